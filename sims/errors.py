"""The one error that users of the suite cause and can mend."""


class InputError(ValueError):
    """Input that cannot be used: one line naming the field, the value and what is allowed.

    The command line prints it as it is, without a traceback, and exits with code 2.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        super().__init__(f"{field}: got {shown}; allowed: {allowed}")
