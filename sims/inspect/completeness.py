"""What a config promises and a model's file lacks, and tensors before attention that are not used.

Both change attention or the rows of a report, so that they are named or refused.
"""

import math
import re
from collections.abc import Iterable, Sequence

from sims.base.errors import InputError
from sims.inspect.reader import SIDES, Model, count, layer_number

DEPTHS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""Keys of config.json that may hold the number of layers."""
SHIFTS = re.compile(r"(?:bias|beta|(?:^|\.)b|b_O)$")
"""Tensors of size d that add a constant to the tokens."""
FOLLOWING = re.compile(
    r"(?i)post|final|mlp|ffn|ff_|feed|output|after|cross|encoder_attn|ls_?\d|layer_?scale|gamma_"
    r"|lambda|(?:ln|norm)_?[23](?!\d)"
)
"""Tensors of size d of a block that act after its self-attention."""


def side_of(module: str) -> str:
    """``encoder`` or ``decoder`` if a module's name contains it, otherwise nothing."""
    return next(iter(re.findall(rf"(?:^|\.)({'|'.join(SIDES)})\.", module)), "")


def absent_layers(model: Model, modules: Sequence[str]) -> list[str]:
    """Sentences on layers that the config counts and that have no attention module.

    Raises:
        InputError: the config counts other shared layers (ALBERT) than there are.
    """
    if any("albert_layers" in module for module in modules):
        groups = count(model.config, ("num_hidden_groups",)) or 1
        shared = groups * (count(model.config, ("inner_group_num",)) or 1)
        if shared != len(modules):
            raise InputError(f"{model.name}: albert_layers", len(modules), f"{shared}, as config")
        return []
    sides = {side_of(module) for module in modules}
    sentences = []
    for side in sorted(sides) if len(sides) > 1 else [""]:
        depth = count(model.config, (f"{side}_layers",)) or count(model.config, DEPTHS) or 0
        present = _numbers(module for module in modules if side in ("", side_of(module)))
        stored = _numbers(name for name in model.shapes if side in ("", side_of(name)))
        for words, gaps in (
            ("not in the file", set(range(depth)) - stored - present),
            ("without attention in the file", set(range(depth)) & stored - present),
            (f"beyond the {depth} of config", {n for n in present if n >= depth > 0}),
        ):
            if gaps and present:
                listed = ", ".join(map(str, sorted(gaps)))
                plural = len(gaps) > 1
                layer = f"{side} layer".strip().capitalize() + "s" * plural
                sentences.append(f"{layer} {listed} {'are' if plural else 'is'} {words}.")
    return sentences


def _numbers(names: Iterable[str]) -> set[int]:
    return {number for name in names if (number := layer_number(name)) is not None}


def not_folded(model: Model, module: str, d: int, cross: bool, after: Sequence[str]) -> list[str]:
    """Tensors of size d of a module's block that may act before it and were not read.

    Args:
        model: a model whose tensors of the module have been read.
        module: name of the attention module.
        d: width of the tokens.
        cross: whether the module is a later one of its block.
        after: modules that act after attention.
    """
    numbered = re.match(r"(?:.*\.)?\d+(?=\.)", module)
    block = numbered[0] if numbered else module.rpartition(".")[0]
    prefix = f"{block}." if block else ""
    names = []
    for name, shape in model.shapes.items():
        inside = name.removeprefix(prefix)
        follows = inside.startswith(tuple(after)) or (not cross and FOLLOWING.search(inside))
        unread = name.startswith(prefix) and name not in model.used
        if unread and not follows and math.prod(shape) == d and not SHIFTS.search(name):
            names.append(inside)
    return names
