"""Errors that users of the suite cause and can fix."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

READABLE = 40
"""Maximum number of names that an error lists; if there are more, it lists a quarter of this."""

OTHER_WORDS = {
    "random": "haar",
    "rbf": "gaussian",
    "squared_exponential": "rbf",
    "dot_product": "softmax",
    "1-entmax": "softmax",
    "2-entmax": "sparsemax",
}
"""Words of other fields and libraries to the names here that they may mean."""


class InputError(ValueError):
    """Raised for unusable input: one line with the field, the value and what is allowed.

    If ``allowed`` is empty, the value is a sentence: ``nosuch.yaml: file not found``. The command
    line prints the message without a traceback and exits with code 2. The message is always one
    printable line, even if the values contain line breaks or control characters.
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
    """Raised for a problem that the requested theory does not cover; simulation may."""


@contextmanager
def located(place: str, unless: str = "\n") -> Iterator[None]:
    """Context in which errors name this place before their field.

    Args:
        place: the place.
        unless: beginning of a field that names its place already.
    """
    try:
        yield
    except InputError as error:
        if error.field.startswith(unless):
            raise
        field = f"{place}: {error.field}"
        raise type(error)(field, error.value, error.allowed) from error


def one_line(text: str) -> str:
    """Text on one line: white space becomes single blanks, unprintable characters escapes."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def one_of(names: Iterable[object], value: object) -> str:
    """Allowed names for an :class:`InputError`, with a suggestion.

    If there are too many for a line, only the nearest to the value.
    """
    # A name with a comma would look like two.
    allowed = [repr(str(name)) if "," in str(name) else str(name) for name in names]
    plain = {name.casefold(): name for name in reversed(allowed)}
    typed = str(value)[:100].casefold()
    meant = OTHER_WORDS.get(typed)
    near = [meant] if meant in plain else get_close_matches(typed, plain, 1)
    shown = ", ".join(allowed)
    if len(allowed) > READABLE:
        nearest = get_close_matches(typed, plain, READABLE // 4, cutoff=0.0)
        shown = ", ".join(plain[name] for name in nearest) + f", … ({len(allowed)} in all)"
    return shown + (f" (did you mean {plain[near[0]]}?)" if near else "")
