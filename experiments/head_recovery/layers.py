"""The layers whose open directions are counted; both roads go through them."""

from collections.abc import Mapping
from typing import Any

KINDS, GATES = ("generic", "repeated", "deficient"), ("none", "generic", "one zero")
CONTENTS = ("shared", "generic", "equal", "uniform")
"""What heads may be that are not free: common to all tokens; or A_h X V_h with only V_h unknown and
A_h generic, one generic matrix, or 1/n."""


def free_layers(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every layer of free heads by its name: n, heads, width, d, kind of W_O and of gates."""
    own, found = settings["free"], {}
    for heads in own["heads"]:
        for width in own["widths"]:
            total = heads * width
            for d in sorted({width, (width + total) // 2, total, 2 * total}):
                kinds = KINDS if min(total, d) > 1 else KINDS[:2]
                for kind, gates in ((kind, gates) for kind in kinds for gates in GATES):
                    name = f"H={heads} d_k={width} d={d}, {kind}, gates {gates}"
                    sizes = {"n": own["n"], "heads": heads, "width": width, "d": d}
                    found[name] = sizes | {"kind": kind, "gates": gates}
    return found
