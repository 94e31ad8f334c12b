"""What a config promises and a file lacks, and what stands before attention and is not used."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sims.inspect.reader import Model, count, layer_number

DEPTHS = (
    ("", ("num_hidden_layers", "n_layer", "num_layers", "n_layers")),
    ("encoder.", ("encoder_layers",)),
    ("decoder.", ("decoder_layers",)),
)
"""Parts of modules' names, and keys of config.json that may hold the numbers of their layers."""
SHIFTS = re.compile(r"(?:bias|beta|(?:^|\.)b|b_O)$")
"""Tensors of size d that add a constant to the tokens."""
FOLLOWING = re.compile(
    r"(?i)post|final|mlp|ffn|ff_|feed|output|after|ls_?\d|layer_?scale|gamma_|lambda"
)
"""Tensors of size d of a block that act after attention."""


def absent_layers(config: Mapping[str, Any], modules: Collection[str]) -> list[str]:
    """Sentences on layers that a config counts and a file lacks, or the other way round."""
    sentences = []
    for part, keys in DEPTHS:
        depth = count(config, keys)
        present = {layer_number(module) for module in modules if part in module}
        if depth is None or None in present:
            continue
        counted = {*range(depth)}
        beyond = present - counted
        if not part and any(count(config, side) for _, side in DEPTHS[1:]):
            beyond = set()  # a decoder may be deeper than the encoder that the number counts
        for place, numbers in (("file", counted - present), ("config", beyond)):
            if numbers:
                listed = ", ".join(map(str, sorted(numbers)))
                sentences.append(f"Not in the {place}: attention of {part}layers {listed}.")
    return sentences


def not_folded(model: Model, module: str, d: int, after: Sequence[str]) -> list[str]:
    """Tensors of size d of a module's block that may act before it and were not read.

    Args:
        model: a model whose tensors of the module have been read.
        module: name of the attention module.
        d: width of the tokens.
        after: modules that act after attention.
    """
    block = re.match(r"(?:.*\.)?\d+\.", module)
    prefix = block[0] if block else ""
    names = []
    for name in model.shapes.keys() - model.used:
        inside = name.removeprefix(prefix)
        known = SHIFTS.search(inside) or FOLLOWING.search(inside) or inside.startswith(tuple(after))
        if name.startswith(prefix) and math.prod(model.shapes[name]) == d and not known:
            names.append(inside)
    return sorted(names)
