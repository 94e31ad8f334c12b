"""Numbers in words: percentages, ranges, and a phrase for too few problems. No JAX."""

from collections.abc import Mapping, Sequence

from sims.judgement import conventions

INTERVAL = f"{100 * conventions.LEVEL:.0f} % interval"


def significant(value: float | None, digits: int = 3) -> str:
    """Number to some significant digits, with a true minus sign and without e-notation."""
    if value is None:
        return "–"
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = f"{mantissa}·10{raised}"
    return text.replace("-", "−")


def percent(value: float | None, digits: int = 2) -> str:
    """Share in percent, to some significant digits; below 10⁴ % without a power of ten."""
    if value is None:
        return "–"
    rounded = float(f"{100 * value:.{digits}g}")
    integer = 100 <= abs(rounded) < 1e4
    number = f"{rounded:.0f}".replace("-", "−") if integer else significant(rounded, digits)
    return f"{number} %"


def percent_range(low: float, high: float) -> str:
    """Two shares in percent as a range: "80 to 83 %"."""
    first, last = percent(low), percent(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def number_range(low: float, high: float) -> str:
    """Two numbers as a range: "0.1 to 0.2"."""
    return f"{significant(low)} to {significant(high)}"


def too_few(problems: int) -> str:
    """Text in place of a number if there are too few problems."""
    return f"too few problems to say ({problems})"


def markdown_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Markdown table of rows, each a mapping of column titles to cells; "" without rows."""
    if not rows:
        return ""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
