"""The report: ledger, experiments and provenance as one page, or as Markdown; and captions."""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt

from sims.errors import InputError
from sims.fingerprint import EXPERIMENTS, experiments
from sims.formulas import sections
from sims.judgement import PAPER_CLAIMS, VERDICTS, Verdict, read_ledger
from sims.results import Results, provenance
from sims.validation import read_yaml

TEXTS = (
    ("Data-generating process", "data_generating_process"),
    ("Estimands", "estimands"),
    ("Methods", "methods"),
    ("Performance measures", "performance_measures"),
)
"""The design of a simulation study after its aim (ADEMP): heading, key of the experiment file."""
# CommonMark without raw HTML: what a caption says cannot change the page.
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")


def render_caption(
    path: Path,
    experiment: Any,
    results: Results,
    verdicts: Sequence[Verdict],
    numbers: Mapping[str, Any],
) -> str:
    """An experiment's caption with the numbers of this run in it.

    ``caption.md`` is a Jinja template of Markdown. It can use ``verdict(claim, regime)``,
    ``points``, ``replicates`` (the fewest of the points), ``fidelity``, ``settings``, the analysis'
    own ``numbers``, the filters ``percent`` and ``significant``, and ``verdict_table``, which has a
    row for every claim of the experiment.

    Raises:
        InputError: the file cannot be read, or names something that is not there.
    """

    def verdict(claim: str, regime: str | None = None) -> Verdict:
        found = [v for v in verdicts if v.claim == claim and regime in (None, v.regime)]
        if len(found) != 1:
            known = ", ".join(f"{v.claim} ({v.regime})" for v in verdicts)
            raise InputError(f"{path}: verdict", f"{claim} ({regime or 'any'})", f"one of {known}")
        return found[0]

    try:
        template = _environment().from_string(path.read_text(encoding="utf-8"))
        text = template.render(
            verdict=verdict,
            verdict_table=_verdict_table(verdicts),
            points=len(results.points),
            replicates=results.replicates,
            fidelity=results.fidelity,
            settings=experiment.settings,
            **numbers,
        )
    except OSError as error:
        raise InputError(str(path), error.strerror, "a readable caption") from None
    except jinja2.TemplateError as error:
        raise InputError(str(path), str(error), "a Jinja template with known names") from None
    return text.rstrip() + "\n"


def _verdict_table(verdicts: Sequence[Verdict]) -> str:
    lines = ["| claim | where | verdict | effect | margin |", "|---|---|---|---|---|"]
    for v in verdicts:
        shown = _significant(v.effect, 2)
        if v.interval is not None and v.interval[0] < v.interval[1]:
            low, high = (_significant(end, 2) for end in v.interval)
            shown += f" ({low} to {high})"
        lines.append(
            f"| `{v.claim}` | {v.regime} | {v.verdict} | {shown} | {_significant(v.margin, 2)} |"
        )
    return "\n".join(lines)


def write_report(folder: Path, fidelity: str, output: Path, linked: bool = False) -> None:
    """Write the page.

    Args:
        folder: results of one fidelity, with ``ledger.json``, ``audit.json`` if the judgement was
            audited, ``seeds.json`` if other seeds were judged, and a folder for each experiment.
        fidelity: its name.
        output: the HTML file.
        linked: the page shows ``NAME.png`` beside it, instead of carrying the figures in itself.
    """
    ledger = read_ledger(folder / "ledger.json")
    entries = [
        _entry(folder / name, name, [v for v in ledger if v.experiment == name], linked)
        for name in experiments()
        if (folder / name / "caption.md").is_file()
    ]
    if not entries:
        raise InputError(str(folder), "nothing to report", "a run: sims plot, or snakemake")
    covered = {verdict.claim for verdict in ledger}
    audit = folder / "audit.json"
    template = _environment(html=True).from_string(
        (Path(__file__).parent / "report.html.j2").read_text(encoding="utf-8")
    )
    page = template.render(
        fidelity=fidelity,
        entries=entries,
        ledger=ledger,
        groups=_groups(ledger),
        counts={kind: sum(v.verdict == kind for v in ledger) for kind in VERDICTS},
        formulas={
            (e["name"], c["id"], c.get("regime", "all")): c["formula"]
            for e in entries
            for c in e["claims"]
        },
        missing={id: text for id, text in PAPER_CLAIMS.items() if id not in covered},
        paper=PAPER_CLAIMS,
        audit=json.loads(audit.read_text(encoding="utf-8")) if audit.is_file() else None,
        seeds=_other_seeds(folder, len(ledger)),
    )
    _write(page, output)


def write_overview(folder: Path, fidelity: str, output: Path) -> None:
    """Write ledger, figures and captions as Markdown, for readers on a code host.

    Args:
        folder: results of one fidelity, as for :func:`write_report`.
        fidelity: its name.
        output: the Markdown file; figures are shown as ``NAME.png`` beside it.
    """
    ledger = read_ledger(folder / "ledger.json")
    counts = ", ".join(f"{sum(v.verdict == k for v in ledger)} {k}" for k in VERDICTS)
    seeds = _other_seeds(folder, len(ledger))
    shown = [name for name in experiments() if (folder / name / "caption.md").is_file()]
    origins = [provenance(folder / name / "simulation.nc") for name in shown]
    machine = {
        f"{o['cores']} cores, {o.get('device', 'cpu')}, jax {o['versions']['jax']}" for o in origins
    }
    lines = [
        "# Ledger, figures and captions",
        "",
        f"Made by `make reproduce FIDELITY={fidelity} && make publish FIDELITY={fidelity}` "
        f"({'; '.join(sorted(machine))}). {len(ledger)} verdicts: {counts}. With designs, formulas "
        "and provenance: [report.html](report.html); for programs: [ledger.json](ledger.json).",
        *(("", f"{seeds[0]}.") if seeds else ()),
        "",
        "| claim | experiment | regime | verdict | effect | interval | margin |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim, experiment, verdicts in _groups(ledger):
        for v in verdicts:
            interval = "" if v.interval is None else ", ".join(map(_significant, v.interval))
            lines.append(
                f"| `{claim}` | [{experiment}](#{experiment}) | {v.regime} | {v.verdict} | "
                f"{_significant(v.effect)} | {interval} | {_significant(v.margin)} |"
            )
    for name in shown:
        caption = (folder / name / "caption.md").read_text(encoding="utf-8").strip()
        lines += ["", f"## {name}", "", f"![{name}]({name}.png)", "", caption]
    _write("\n".join(lines) + "\n", output)


def _other_seeds(folder: Path, verdicts: int) -> tuple[str, list[dict[str, Any]]] | None:
    """What ``sims seeds`` found for this very ledger: a sentence, and the rows that varied."""
    path = folder / "seeds.json"
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("ledger") != hashlib.sha256((folder / "ledger.json").read_bytes()).hexdigest():
        return None
    times = sorted({sum(row["verdicts"].values()) for row in found["rows"]})
    often = f"{times[0]} to {times[-1]}" if len(times) > 1 else f"{times[0]}"
    sentence = (
        f"Judged again with {often} other seeds each: {len(found['rows'])} of {verdicts} verdicts, "
        f"{found['judged']:,} times in all; {found['turned']} turned between supported and "
        f"refuted, {found['inconclusive']} times one was inconclusive"
    )
    return sentence, [row for row in found["rows"] if set(row["verdicts"]) != {row["first"]}]


def _write(text: str, output: Path) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o644)
    os.replace(name, output)


def _groups(ledger: Iterable[Verdict]) -> list[tuple[str, str, list[Verdict]]]:
    """Verdicts by claim and experiment, in the order of the paper's claims."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in ledger:
        groups.setdefault((verdict.claim, verdict.experiment), []).append(verdict)
    order = [*PAPER_CLAIMS, *(claim for claim, _ in groups)]
    found = sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    return [(*key, verdicts) for key, verdicts in found]


def _entry(folder: Path, name: str, verdicts: list[Verdict], linked: bool) -> dict[str, Any]:
    """All that the page shows of one experiment."""
    spec = read_yaml(EXPERIMENTS / name / "experiment.yaml")
    origins = {}
    for road in ("simulation", "theory"):
        origin = provenance(folder / f"{road}.nc")
        origin.pop("specification", None)
        origins[road] = origin
    image = base64.b64encode((folder / "figure.png").read_bytes()).decode()
    return {
        "name": name,
        "title": spec["title"],
        "aim": spec["aim"],
        "design": [(heading, spec[key]) for heading, key in TEXTS],
        "claims": spec["claims"],
        "verdicts": verdicts,
        "formulas": _formulas(dict.fromkeys(c["formula"] for c in spec["claims"])),
        "figure": f"{name}.png" if linked else f"data:image/png;base64,{image}",
        "caption": _markdown.render((folder / "caption.md").read_text(encoding="utf-8")),
        "provenance": [(road, list(_rows(origin))) for road, origin in origins.items()],
    }


def _formulas(anchors: Iterable[str]) -> list[tuple[str, str]]:
    """Heading and text, as HTML, of the sections of docs/theory.md that the anchors name."""
    found = sections()
    chosen = [found[a.lstrip("#")] for a in anchors if a.lstrip("#") in found]
    return [(heading, _markdown.render(body)) for heading, body in chosen]


def _rows(origin: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Provenance as rows of text."""
    rows = []
    for key, value in origin.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        text = value if isinstance(value, str) else json.dumps(value)
        rows.append((key.replace("_", " "), text or "none"))
    return rows


def _environment(html: bool = False) -> jinja2.Environment:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=html, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": _percent, "significant": _significant}
    return environment


def _significant(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits, with a true minus and no e-notation for people."""
    if value is None:
        return "–"
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = f"{mantissa}·10{raised}"
    return text.replace("-", "−")


def _percent(value: float | None, digits: int = 2) -> str:
    """A share in percent, to some significant digits."""
    return "–" if value is None else f"{_significant(100 * value, digits)} %"
