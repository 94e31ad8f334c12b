"""Locations of the heads' matrices in a model's file.

Names alone identify layouts, and each name belongs to one layout::

    separate   q, k, v, o in separate tensors: LLaMA, Mistral, Qwen, Phi, OPT, BERT, ALBERT, ViT
    columns    GPT-2: one (d, 3d) tensor, stored (in, out), blocks q, k, v
    blocks     Phi-3, timm, torch: one tensor of rows, blocks q, k, v
    heads      TransformerLens: separate tensors (heads, d, d_k)
    groups     NeoX, BLOOM, Falcon: one tensor of rows, of each key head its queries, key and value

Query head h reads key head ⌊h·H_kv/H⌋. d_k follows from the tensors and the number of heads, the
number of key heads from the rows of keys.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import numpy as np

from sims.attention.attention import HeadMatrices
from sims.base.documents import mapping
from sims.base.errors import InputError
from sims.inspect.completeness import not_folded
from sims.inspect.families import FAMILIES, REFUSED, Family
from sims.inspect.layer import CROSS, Layer
from sims.inspect.norms import read_norms
from sims.inspect.reader import Model, count, layer_number

SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
Layout = tuple[str, list[str], list[str], str]
"""Ending of modules, names of their tensors and of possible outputs, and the arrangement."""
RECORDS = r"""
layouts:
- [layers\.\d+\.(?:self_attn|encoder_attn|cross_attn|attention), [q_proj, k_proj, v_proj],
   [o_proj, out_proj, dense], separate]
- [layer\.\d+\.(?:cross)?attention\.(?:self|attention), [query, key, value],
   [../output.dense], separate]
- [albert_layers\.\d+\.attention, [query, key, value], [dense], separate]
- [layer\.\d+\.attention, [q_lin, k_lin, v_lin], [out_lin], separate]
- [h\.\d+\.attn, [c_attn], [c_proj], columns]
- [layers\.\d+\.self_attn, [qkv_proj], [o_proj], blocks]
- [blocks\.\d+\.attn, [qkv], [proj], blocks]
- [blocks\.\d+\.attn, [W_Q, W_K, W_V], [W_O], heads]
- ['(?:gpt_neox\.|(?<!.))layers\.\d+\.attention', [query_key_value], [dense], groups]
- [h\.\d+\.self_attention, [query_key_value], [dense], groups]
- [.*, [q_proj_weight, k_proj_weight, v_proj_weight], [out_proj], separate]
- [.*, [in_proj_weight], [out_proj], blocks]
"""
LAYOUTS: list[Layout] = list(map(tuple, mapping(RECORDS, "layouts")["layouts"]))
"""Known layouts; the first that fits a module is its layout."""
WHOLE_NAMES = re.compile(r"\w+_proj_weight|_?W_[QKVO]")
"""Tensors of torch.nn.MultiheadAttention and TransformerLens; others end in ``.weight``."""
KNOWN = (
    "q_proj/k_proj/v_proj, query/key/value, q_lin/k_lin/v_lin, c_attn, qkv_proj, qkv, W_Q/W_K/W_V,"
    " query_key_value or in_proj_weight in a module named as by transformers, timm, torch or"
    " TransformerLens"
)
ATTENTION = re.compile(r"(?i)(?:^|\.)(?!\w*(?:norm|ln))\w*att(?:n|ention)\w*\.")
"""Pattern in the names of attention tensors."""
NOT_READ = (
    (r"(?:^|[._])lora[._]|^base_model\.model\.|\.base_layer\.",
     "an adapter (LoRA)", "a complete model: merge the adapter into it"),
    (r"\.(?:qweight|qzeros|scales|g_idx|absmax|quant_map|SCB|weight_(?:packed|scale\w*))$",
     "a quantised tensor", "F64, F32, F16, BF16: dequantise first"),
    (r"\.(?:q_a|kv_a|kv_b)_\w+\.", "latent attention (MLA)", KNOWN),
    (r"\.lambda_[qk]\d$", "differential attention", KNOWN),
)  # fmt: skip
"""Unsupported tensors by name, with a description and the supported alternative."""
BUFFERS = re.compile(
    r"(?:masked_)?bias|mask|IGNORE|b_O|rotary_(?:sin|cos)|rotary_emb\.(?:inv_freq|\w+_cached)"
    r"|(?:output\.)?LayerNorm\.\w+|(?:\w+\.)*(?:\w*_proj|proj|dense|out_lin)\.bias"
)
"""Tensors of an attention module that do not affect attention weights."""
SINKS = ".sinks"
"""Tensors that affect attention weights but not the heads' matrices."""


def modules(model: Model) -> dict[str, Layout]:
    """Layouts of a model's attention modules, in the order of the modules' numbers.

    Raises:
        InputError: no module is known, or attention tensors are not supported.
    """
    if (family := str(model.config.get("model_type"))) in REFUSED:
        raise InputError("config.model_type", family, REFUSED[family])
    of_attention = list(filter(ATTENTION.search, model.shapes))
    for pattern, got, allowed in NOT_READ:
        for name in filter(re.compile(pattern).search, of_attention):
            raise InputError(f"{model.name}: {name}", got, allowed)
    found: dict[str, Layout] = {}
    for layout, name in product(LAYOUTS, model.shapes):
        module = name.removesuffix(".weight").rpartition(".")[0]
        ending, names, *_ = layout
        if name == _tensor(module, names[0]) and re.fullmatch(rf"(?:.*\.)?{ending}", module):
            found.setdefault(module or ".", layout)
    if not found:
        got = next(iter([*of_attention, *model.shapes]), "no tensor")
        raise InputError(f"{model.name}: layout", got, KNOWN)
    roots = tuple(map(_root, found))
    for name in of_attention:
        if not name.startswith(roots):
            raise InputError(f"{model.name}: {name}", "attention of an unknown layout", KNOWN)
    order = sorted(found, key=lambda module: re.sub(r"\d+", lambda n: n[0].zfill(9), module))
    return {module: found[module] for module in order}


def layers(model: Model, heads: int | None = None) -> Iterator[Layer]:
    """Layers of a model, read one at a time.

    Args:
        model: an open model.
        heads: H, if no config gives it.

    Raises:
        InputError: the layout is unknown, a tensor does not fit it or is not supported, or H is
            unknown.
    """
    layouts = modules(model)
    numbers = numbered(layouts)
    tensors: dict[str, set[str]] = {}
    for module, number in numbers.items():
        before = set(model.used)
        yield _layer(model, module, layouts, heads, number)
        kind, *used = (re.sub(r"\d+", "*", name) for name in [module, *model.used - before])
        for name in tensors.setdefault(kind, {*used}) ^ {*used}:
            raise InputError(f"{model.name}: {name}", "in some layers, and missing in others")


def numbered(names: Iterable[str]) -> dict[str, int | None]:
    """Numbers of the layers of modules; None for all unless they are distinct."""
    numbers = {name: layer_number(name) for name in names}
    if None in numbers.values() or len({*numbers.values()}) < len(numbers):
        return dict.fromkeys(numbers)
    return numbers


def _tensor(module: str, name: str) -> str:
    """Full name of a tensor of a module."""
    prefix = "" if module in ("", ".") else f"{module}."
    return f"{prefix}{name}" if WHOLE_NAMES.fullmatch(name) else f"{prefix}{name}.weight"


def _root(module: str) -> str:
    """Prefix of all tensor names of a module; its output may be a sibling."""
    if re.search(r"attention\.(?:self|attention)$", module):
        module = module.rpartition(".")[0]
    return "" if module == "." else f"{module}."


def _layer(
    model: Model,
    module: str,
    layouts: Mapping[str, Layout],
    requested: int | None,
    number: int | None,
) -> Layer:
    rows, output = _matrices(model, module, layouts[module], requested)
    d = output.shape[-1]
    family = FAMILIES.get(str(model.config.get("model_type")), Family())
    norms = read_norms(model, module, family, [part.shape[:2] for part in rows[:2]])
    first = family.norms_first(model.config)
    gain = _gain(model, module, family, d) if first else None
    depth = model.config.get("num_hidden_layers") if "albert_layers" in module else None
    left = _unread(model, module)
    # In one memory layout, so that products have the same last bits whatever the file's.
    query, key, value = (np.ascontiguousarray(part[..., :-1].swapaxes(-1, -2)) for part in rows)
    return Layer(
        module,
        number,
        HeadMatrices(query, key, value, output),
        (rows[0][..., -1], rows[1][..., -1], rows[2][..., -1]),
        norms,
        gain,
        family.centred and gain is not None,
        not_folded(model, module, d, family.after if first else family.after + family.gain),
        CROSS.search(module) is not None or len({part.shape[-1] for part in rows}) > 1,
        max(1, depth // len(layouts)) if isinstance(depth, int) else 1,
        left,
    )


def _gain(model: Model, module: str, family: Family, d: int) -> np.ndarray | None:
    """Gain (d,) of a family's norm before attention; None if it is not in the file."""
    above = module.rpartition(".")[0]
    for place, name in product((above, above.rpartition(".")[0]), family.gain):
        stored = f"{place}.{name}.weight"
        if stored in model.shapes:
            return model.read(stored, (d,)) + family.offset
    return None


def _unread(model: Model, module: str) -> list[str]:
    """The tensors of a module that only weights of attention depend on, and that are not read.

    Raises:
        InputError: another tensor of the module is not understood.
    """
    root = _root(module)
    left = []
    for name in model.shapes:
        known = name in model.used or BUFFERS.fullmatch(name.removeprefix(root))
        if known or not name.startswith(root):
            continue
        left.append(name)
        if not name.endswith(SINKS):
            got = f"unknown to model_type {model.config.get('model_type')}"
            allowed = "attention tensors of a known model_type; unknown ones are refused"
            raise InputError(f"{model.name}: {name}", got, allowed)
    return left


def _matrices(
    model: Model, module: str, layout: Layout, requested: int | None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of queries, keys and values by heads, (heads, d_k, d + 1), and W_O (H, d_v, d).

    The last column of rows is their bias.
    """
    _, names, outputs, arrangement = layout
    beside = f"{module.rpartition('.')[0]}."
    places = [_tensor(module, name).replace(f"{module}.../", beside) for name in outputs]
    place = next(filter(model.shapes.__contains__, places), None)
    if place is None:
        raise InputError(f"{model.name}: {module}", "no output matrix", " or ".join(outputs))
    output = model.read(place)
    if arrangement == "heads":
        requested = len(output) if requested is None else requested
        output = output.reshape(-1, output.shape[-1])
    elif arrangement != "columns":
        output = output.T
    if output.ndim != 2:
        raise InputError(f"{model.name}: {place}", output.shape, "a matrix")
    d = output.shape[1]
    heads, documented_width = model.heads(module, d, requested)
    width, remainder = divmod(len(output), heads)
    if remainder:
        allowed = f"{heads} heads of equal width; check the number of heads"
        raise InputError(f"{model.name}: {place}", model.shapes[place], allowed)
    parts = [_with_bias(model, module, name, d, arrangement) for name in names]
    if len(parts) == 1:
        parts = _split(model, module, parts[0], arrangement == "groups", (heads, width))
    sizes = list(map(len, parts))
    if documented_width not in (None, sizes[0] / heads):
        allowed = f"{heads} heads of d_k = {documented_width}, as config says"
        raise InputError(f"{model.name}: {module}", f"{sizes[0]} rows of queries", allowed)
    keys = _count_keys(model, module, sizes, heads, width)
    documented = count(model.config, ("num_key_value_heads",))
    if arrangement != "groups" and documented not in (None, keys):
        allowed = f"{documented}, as config says"
        raise InputError(f"{model.name}: {module}", f"{keys} key heads", allowed)
    pairs = zip((heads, keys, keys), parts, strict=True)
    rows = [part.reshape(number, -1, part.shape[1]) for number, part in pairs]
    return rows, np.ascontiguousarray(output).reshape(heads, width, d)


def _split(
    model: Model, module: str, rows: np.ndarray, grouped: bool, shape: tuple[int, int]
) -> list[np.ndarray]:
    """Rows of queries, keys and values of one tensor with groups or blocks, for (H, d_k).

    Raises:
        InputError: the rows do not fit.
    """
    heads, width = shape
    keys, remainder = divmod(len(rows) - heads * width, 2 * width)
    if remainder or keys < 1 or heads % keys:
        allowed = f"(H + 2·H_kv)·d_k with H = {heads}, d_k = {width} and H_kv a divisor of H"
        raise InputError(f"{model.name}: {module}", f"{len(rows)} rows", allowed)
    if not grouped:
        return np.split(rows, [heads * width, (heads + keys) * width])
    groups = rows.reshape(keys, heads // keys + 2, width, -1)
    parts = [groups[:, :-2], groups[:, -2], groups[:, -1]]
    return [part.reshape(-1, rows.shape[1]) for part in parts]


def _count_keys(model: Model, module: str, sizes: list[int], heads: int, width: int) -> int:
    """H_kv of so many rows of queries, keys and values.

    Raises:
        InputError: the rows do not fit the number of heads.
    """
    queries, keys, values = sizes
    d_k = queries // heads
    if not d_k or queries % heads or keys % d_k or heads % (keys // d_k or heads + 1):
        raise InputError(f"{model.name}: {module}", sizes, f"q and k rows of {heads} heads")
    key_heads = keys // d_k
    if values != key_heads * width:
        allowed = f"v rows of {key_heads} heads of {width}"
        raise InputError(f"{model.name}: {module}", sizes, allowed)
    return key_heads


def _with_bias(model: Model, module: str, part: str, d: int, arrangement: str) -> np.ndarray:
    """Tensor (rows, d) with its bias, or zeros, as last column.

    Keys and values of torch.nn.MultiheadAttention may have columns of other tokens.
    """
    name = _tensor(module, part)
    if arrangement == "heads" and name not in model.shapes:
        name = _tensor(module, f"_{part}")
    weight = model.read(name)
    if arrangement == "heads" and weight.ndim == 3:
        weight = weight.swapaxes(1, 2).reshape(-1, weight.shape[1])
    if arrangement == "columns" and weight.ndim == 2:
        if weight.shape[1] == d != len(weight):
            hint = ": transpose torch.nn.Linear's (nanoGPT; not GPT-BigCode)" * (
                len(weight) == 3 * d
            )
            allowed = f"({d}, {3 * d}), (in, out) as GPT-2{hint}"
            raise InputError(f"{model.name}: {name}", weight.shape, allowed)
        weight = weight.T
    other_tokens = part in SEPARATE[1:]
    if weight.ndim != 2 or (weight.shape[1] != d and not other_tokens):
        raise InputError(f"{model.name}: {name}", weight.shape, f"a matrix with a side of d = {d}")
    return np.column_stack([weight, _bias(model, part, name, len(weight))])


def _bias(model: Model, part: str, weight: str, rows: int) -> np.ndarray:
    """Bias of a tensor of rows; 0 without one."""
    name = weight.replace("_weight", "_bias").replace(".weight", ".bias").replace("W_", "b_")
    joint = weight.replace(part, "in_proj_bias")
    if name in model.shapes:
        shape = (rows,) if "W_" not in part else model.shapes[weight][::2]
        return model.read(name, shape).ravel()
    if part in SEPARATE and joint in model.shapes:
        return np.split(model.read(joint, (3 * rows,)), 3)[SEPARATE.index(part)]
    return np.zeros(rows)
