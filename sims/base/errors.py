"""The one error that users of the suite cause and can mend."""

from collections.abc import Iterable
from difflib import get_close_matches

READABLE = 40
"""Names that an error lists; of more it lists a quarter of this."""


class InputError(ValueError):
    """Input that cannot be used: one line naming the field, the value and what is allowed.

    Where nothing is ``allowed`` the value is a sentence: ``nosuch.yaml: file not found``. The
    command line prints it as it is, without a traceback, and exits with code 2. Whatever the three
    hold (line breaks, control characters), the message is one line that can be printed.
    """

    def __init__(self, field: str, value: object, allowed: str = "") -> None:
        self.field, self.value, self.allowed = field, value, allowed
        shown, location = one_line(repr(value)), one_line(field)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        location = location if len(location) <= 300 else f"{location[:120]}...{location[-177:]}"
        template = f"got {shown}; allowed: {one_line(allowed)}"
        super().__init__(f"{location}: {template if allowed else one_line(str(value))}")

    def __reduce__(self) -> tuple[type, tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.allowed)


class Uncovered(InputError):
    """A problem that the requested theory does not cover; simulation may."""


def one_line(text: str) -> str:
    """The text on one line: white space as single blanks, what cannot be printed as escapes."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def one_of(names: Iterable[object], value: object) -> str:
    """The names allowed, for an :class:`InputError`, and which of them may have been meant.

    Of more than can be read in a line, those nearest to the value.
    """
    allowed = [str(name) for name in names]
    plain = {name.casefold(): name for name in reversed(allowed)}
    typed = str(value)[:100].casefold()
    near = get_close_matches(typed, plain, 1)
    shown = ", ".join(allowed)
    if len(allowed) > READABLE:
        nearest = get_close_matches(typed, plain, READABLE // 4, cutoff=0.0)
        shown = ", ".join(plain[name] for name in nearest) + f", … ({len(allowed)} in all)"
    return shown + (f" (did you mean {plain[near[0]]}?)" if near else "")
