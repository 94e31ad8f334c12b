"""What is compared on problems drawn anew: heads by kernel, law of the keys, stride, bandwidth."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]


class Case(NamedTuple):
    """Heads of one kernel, over slots of ``stride`` keys of one law, at one bandwidth."""

    kernel: str
    design: str
    stride: int
    bandwidth: float

    @property
    def name(self) -> str:
        """As results have it."""
        return f"{self.kernel}, {self.design}, s = {self.stride}, b = {self.bandwidth:.3g}"


def cases(own: Settings, softmax: Any) -> list[Case]:
    """What is compared: strides at the usual bandwidths; iid pairs at b beside keys at √2 b."""
    usual = {"softmax": softmax, "gaussian": own["gaussian"]}
    out = [
        Case(kernel, design, stride, usual[kernel])
        for kernel, designs in own["strides"].items()
        for design, strides in designs.items()
        for stride in (1, *strides)
    ]
    for b in own["doubled"]:
        out += [Case("softmax", "iid", 2, b), Case("softmax", "iid", 1, 2**0.5 * b)]
    return list(dict.fromkeys(out))
