"""Locations of the heads' matrices in a model's file.

Names alone identify layouts, and each name belongs to one layout::

    separate   q, k, v, o in separate tensors: LLaMA, Mistral, Qwen, Phi, OPT, BERT, ALBERT, ViT
    columns    GPT-2: one (d, 3d) tensor, stored (in, out), blocks q, k, v
    blocks     Phi-3, timm, torch: one tensor of rows, blocks q, k, v
    groups     NeoX, BLOOM, Falcon: one tensor of rows, of each key head its queries, key and value

Query head h reads key head ⌊h·H_kv/H⌋. d_k follows from the tensors and the number of heads, the
number of key heads from the rows of keys.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from sims.attention.attention import HeadMatrices
from sims.base.errors import InputError
from sims.inspect.families import FAMILIES, Family
from sims.inspect.norms import HeadNorm, read_norms
from sims.inspect.reader import Model, count, layer_number

LAYOUTS = (
    (r"layers\.\d+\.(?:self_attn|encoder_attn|cross_attn|attention)",
     ("q_proj", "k_proj", "v_proj"), ("o_proj", "out_proj", "dense"), "separate"),
    (r"layer\.\d+\.(?:cross)?attention\.(?:self|attention)",
     ("query", "key", "value"), ("../output.dense",), "separate"),
    (r"albert_layers\.\d+\.attention", ("query", "key", "value"), ("dense",), "separate"),
    (r"layer\.\d+\.attention", ("q_lin", "k_lin", "v_lin"), ("out_lin",), "separate"),
    (r"h\.\d+\.attn", ("c_attn",), ("c_proj",), "columns"),
    (r"layers\.\d+\.self_attn", ("qkv_proj",), ("o_proj",), "blocks"),
    (r"blocks\.\d+\.attn", ("qkv",), ("proj",), "blocks"),
    (r"(?:gpt_neox\.|(?<!.))layers\.\d+\.attention", ("query_key_value",), ("dense",), "groups"),
    (r"h\.\d+\.self_attention", ("query_key_value",), ("dense",), "groups"),
)  # fmt: skip
"""Endings of modules, names of their tensors and of possible outputs, and the arrangement."""
CUTOFF = 1e-10
"""Matrices of a head below this share of the largest head's count as 0."""
IN_PROJECTION = "in_proj_weight"
"""Layout of torch.nn.MultiheadAttention; the module has any name."""
KNOWN = (
    "q_proj/k_proj/v_proj, query/key/value, q_lin/k_lin/v_lin, c_attn, qkv_proj, qkv, "
    "query_key_value or in_proj_weight in a module named as by transformers, timm or torch"
)
ATTENTION = re.compile(r"(?i)(?:^|\.)(?!\w*(?:norm|ln))\w*att(?:n|ention)\w*\.")
"""Pattern in the names of attention tensors."""
NOT_READ = (
    (r"(?:^|[._])lora[._]|^base_model\.model\.|\.base_layer\.",
     "an adapter (LoRA)", "a whole model: merge the adapter into it"),
    (r"\.(?:qweight|qzeros|scales|g_idx|absmax|quant_map|SCB|weight_(?:packed|scale\w*))$",
     "a quantised tensor", "F64, F32, F16, BF16: dequantise first"),
    (r"\.(?:q_a|kv_a|kv_b)_\w+\.", "latent attention (MLA)", KNOWN),
    (r"\.lambda_[qk]\d$", "differential attention", KNOWN),
)  # fmt: skip
"""Unsupported tensors by name, with a description and the supported alternative."""
BUFFERS = re.compile(
    r"(?:masked_)?bias|rotary_emb\.(?:inv_freq|\w+_cached)|(?:output\.)?LayerNorm\.\w+|(?:\w+\.)*(?:\w*_proj|proj|dense"
    r"|out_lin)\.bias"
)
"""Tensors of an attention module that do not affect attention weights."""
SINKS = ".sinks"
"""Tensors that affect attention weights but not the heads' matrices."""


@dataclass(frozen=True)
class Layer:
    """Heads of one attention module, in float64.

    Attributes:
        module: its name in the file.
        number: number of the layer, if modules have distinct numbers; None otherwise.
        matrices: query (H, d, d_k), key (H_kv, d, d_k), value (H_kv, d, d_v), output (H, d_v, d).
        biases: biases of queries (H, d_k), keys (H_kv, d_k) and values (H_kv, d_v); 0 without any.
        norms: norms of queries and of keys; empty without norms.
        gain: gain of the normalisation before the module (d); None if none is documented.
        centred: whether that normalisation removes the mean.
        passes: number of times that the model applies the module.
        left: names of tensors that affect only attention weights, and are not read.
    """

    module: str
    number: int | None
    matrices: HeadMatrices
    biases: tuple[np.ndarray, np.ndarray, np.ndarray]
    norms: tuple[HeadNorm, ...] = ()
    gain: np.ndarray | None = None
    centred: bool = False
    passes: int = 1
    left: Sequence[str] = ()

    @property
    def key_head(self) -> np.ndarray:
        """Key head that each query head reads, (H,)."""
        heads = len(self.matrices.query)
        return np.arange(heads) * len(self.matrices.key) // heads

    @property
    def normed(self) -> HeadMatrices:
        """Matrices that include the linear part of the normalisation of queries and keys."""
        if not self.norms:
            return self.matrices
        query, key, value, output = self.matrices
        return HeadMatrices(self.norms[0].fold(query), self.norms[1].fold(key), value, output)

    @property
    def folded(self) -> HeadMatrices:
        """Matrices as seen from the normalised residual stream: ``(I − 11ᵀ/d) diag(g) W``.

        Matrices of a head that are negligible relative to the other heads' are set to 0.
        """

        def fold(matrix: np.ndarray) -> np.ndarray:
            scaled = matrix if self.gain is None else self.gain[:, None] * matrix
            folded = scaled - scaled.mean(-2, keepdims=True) if self.centred else scaled
            sizes = abs(folded).max((1, 2), keepdims=True)
            return np.where(sizes > CUTOFF * abs(scaled).max(), folded, 0.0)

        query, key, value, output = self.normed
        return HeadMatrices(fold(query), fold(key), fold(value), output)


def modules(model: Model) -> list[str]:
    """Attention modules of a model, in the order of their numbers.

    Raises:
        InputError: no module is known, or attention tensors are not supported.
    """
    of_attention = list(filter(ATTENTION.search, model.shapes))
    for pattern, got, allowed in NOT_READ:
        for name in filter(re.compile(pattern).search, of_attention):
            raise InputError(f"{model.name}: {name}", got, allowed)
    names = {module for module in map(_module, model.shapes) if module is not None}
    if not names:
        got = next(iter([*of_attention, *model.shapes]), "no tensor")
        raise InputError(f"{model.name}: layout", got, KNOWN)
    roots = tuple(map(_root, names))
    for name in of_attention:
        if not name.startswith(roots):
            raise InputError(f"{model.name}: {name}", "attention of an unknown layout", KNOWN)
    return sorted(names, key=lambda module: re.sub(r"\d+", lambda n: n[0].zfill(9), module))


def layers(model: Model, heads: int | None = None) -> Iterator[Layer]:
    """Layers of a model, read one at a time.

    Args:
        model: an open model.
        heads: H, if no config gives it.

    Raises:
        InputError: the layout is unknown, a tensor does not fit it or is not supported, or H is
            unknown.
    """
    names = modules(model)
    numbers = [layer_number(module) for module in names]
    numbered = None not in numbers and len(set(numbers)) == len(names)
    for module, number in zip(names, numbers, strict=True):
        yield _layer(model, module, heads, len(names), number if numbered else None)


def _module(name: str) -> str | None:
    """Attention module that a tensor's name identifies, None for other tensors."""
    if name == IN_PROJECTION or name.endswith(f".{IN_PROJECTION}"):
        return name.removesuffix(IN_PROJECTION).removesuffix(".") or "."
    module, _, last = name.removesuffix(".weight").rpartition(".")
    if name.endswith(".weight"):
        for pattern, names, *_ in LAYOUTS:
            if last == names[0] and _is_of(pattern, module):
                return module
    return None


def _is_of(pattern: str, module: str) -> bool:
    return re.fullmatch(rf"(?:.*\.)?{pattern}", module) is not None


def _root(module: str) -> str:
    """Prefix of all tensor names of a module; its output may be a sibling."""
    if re.search(r"attention\.(?:self|attention)$", module):
        module = module.rpartition(".")[0]
    return "" if module == "." else f"{module}."


def _layer(
    model: Model, module: str, requested: int | None, depth: int, number: int | None
) -> Layer:
    rows, output = _matrices(model, module, requested)
    d = output.shape[-1]
    family = FAMILIES.get(str(model.config.get("model_type")), Family())
    norms = read_norms(model, module, family, [part.shape[:2] for part in rows[:2]])
    above = module.rpartition(".")[0]
    places = (above, above.rpartition(".")[0])
    gain = None
    for place, name in product(places, family.gain):
        if gain is None and f"{place}.{name}.weight" in model.shapes:
            gain = model.read(f"{place}.{name}.weight") + family.offset
    passes = model.config.get("num_hidden_layers", depth) if "albert_layers" in module else 1
    left = _unread(model, module)
    # In one memory layout, so that products have the same last bits whatever the file's.
    query, key, value = (np.ascontiguousarray(part[..., :d].swapaxes(-1, -2)) for part in rows)
    return Layer(
        module,
        number,
        HeadMatrices(query, key, value, output),
        (rows[0][..., d], rows[1][..., d], rows[2][..., d]),
        norms,
        gain,
        family.centred and gain is not None,
        max(1, passes // depth) if isinstance(passes, int) else 1,
        left,
    )


def _unread(model: Model, module: str) -> list[str]:
    """The tensors of a module that only weights of attention depend on, and that are not read.

    Raises:
        InputError: another tensor of the module is not understood.
    """
    root = _root(module)
    names = [n for n in model.shapes if n.startswith(root) and n not in model.used]
    left = [name for name in names if not BUFFERS.fullmatch(name.removeprefix(root))]
    for name in left:
        if not name.endswith(SINKS):
            got = f"unknown to model_type {model.config.get('model_type')}"
            allowed = "attention tensors of a known model_type; unknown ones are refused"
            raise InputError(f"{model.name}: {name}", got, allowed)
    return left


def _matrices(
    model: Model, module: str, requested: int | None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of queries, keys and values by heads, (heads, d_k, d + 1), and W_O (H, d_v, d).

    The last column of rows is their bias.
    """
    prefix = "" if module == "." else f"{module}."
    names, outputs, arrangement = _layout(model, module)
    beside = f"{module.rpartition('.')[0]}."
    places = [f"{prefix}{name}.weight".replace(f"{prefix}../", beside) for name in outputs]
    place = next(filter(model.shapes.__contains__, places), None)
    if place is None:
        raise InputError(f"{model.name}: {module}", "no output matrix", " or ".join(outputs))
    transposed = arrangement == "columns"
    output = model.read(place)
    output = output if transposed else output.T
    if output.ndim != 2:
        raise InputError(f"{model.name}: {place}", output.shape, "a matrix")
    d = output.shape[1]
    heads, documented_width = model.heads(module, d, requested)
    width, remainder = divmod(len(output), heads)
    if remainder:
        allowed = f"{heads} heads of equal width; check the number of heads"
        raise InputError(f"{model.name}: {place}", model.shapes[place], allowed)
    tensors = [_with_bias(model, prefix + name, d, transposed) for name in names]
    parts = tensors
    if arrangement != "separate":
        key_heads = _key_heads(model, module, len(tensors[0]), heads, width)
        parts = _split(tensors[0], arrangement, heads, key_heads, width)
    sizes = [len(part) for part in parts]
    if documented_width not in (None, sizes[0] / heads):
        allowed = f"{heads} heads of d_k = {documented_width}, as config says"
        raise InputError(f"{model.name}: {module}", f"{sizes[0]} rows of queries", allowed)
    keys = _count_keys(model, module, sizes, heads, width)
    documented = count(model.config, ("num_key_value_heads",))
    if arrangement != "groups" and documented not in (None, keys):
        allowed = f"{documented}, as config says"
        raise InputError(f"{model.name}: {module}", f"{keys} key heads", allowed)
    query, key, value = parts
    rows = [query.reshape(heads, -1, d + 1)]
    rows += [key.reshape(keys, -1, d + 1), value.reshape(keys, -1, d + 1)]
    return rows, np.ascontiguousarray(output).reshape(heads, width, d)


def _split(
    rows: np.ndarray, arrangement: str, heads: int, key_heads: int, width: int
) -> list[np.ndarray]:
    """Rows of queries, keys and values of one tensor with groups or blocks."""
    if arrangement != "groups":
        return np.split(rows, [heads * width, (heads + key_heads) * width])
    columns = rows.shape[1]
    grouped = rows.reshape(key_heads, heads // key_heads + 2, width, columns)
    parts = [grouped[:, :-2], grouped[:, -2], grouped[:, -1]]
    return [part.reshape(-1, columns) for part in parts]


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


def _layout(model: Model, module: str) -> tuple[list[str], tuple[str, ...], str]:
    """Layout of a module: names of its tensors and outputs, and the arrangement."""
    for pattern, names, outputs, arrangement in LAYOUTS:
        if _is_of(pattern, module) and f"{module}.{names[0]}.weight" in model.shapes:
            return [f"{name}.weight" for name in names], outputs, arrangement
    return [IN_PROJECTION], ("out_proj",), "blocks"


def _with_bias(model: Model, name: str, d: int, transposed: bool) -> np.ndarray:
    """Tensor (rows, d) with its bias, or zeros, as last column."""
    weight = model.read(name)
    if transposed and weight.ndim == 2 and weight.shape[1] == d != len(weight):
        allowed = f"{weight.shape[::-1]}, (in, out) as GPT-2: transpose torch.nn.Linear's (nanoGPT)"
        raise InputError(f"{model.name}: {name}", weight.shape, allowed)
    weight = weight.T if transposed else weight
    if weight.ndim != 2 or weight.shape[1] != d:
        raise InputError(f"{model.name}: {name}", weight.shape, f"a matrix with a side of d = {d}")
    bias_name = name.replace("_weight", "_bias").replace(".weight", ".bias")
    bias = np.zeros(len(weight))
    if bias_name in model.shapes:
        bias = model.read(bias_name, (len(weight),))
    return np.column_stack([weight, bias])


def _key_heads(model: Model, module: str, rows: int, heads: int, width: int) -> int:
    """Number of key heads H_kv, from (H + 2H_kv)·d_k rows."""
    keys, remainder = divmod(rows - heads * width, 2 * width)
    if remainder or keys < 1 or heads % keys:
        allowed = f"(H + 2·H_kv)·d_k with H = {heads}, d_k = {width} and H_kv a divisor of H"
        raise InputError(f"{model.name}: {module}", f"{rows} rows", allowed)
    return keys
