"""Where a model's file keeps the matrices of its heads.

Layouts are recognised by names alone, and a name is of one layout::

    separate   q, k, v, o in tensors of their own: LLaMA, Mistral, Qwen, Phi, OPT, BERT, ALBERT, ViT
    columns    GPT-2: one (d, 3d) tensor, stored (in, out), blocks q, k, v
    blocks     Phi-3, timm, torch: one tensor of rows, blocks q, k, v
    groups     NeoX, BLOOM, Falcon: one tensor of rows, of each key head its queries, key and value

Query head h reads key head ⌊h·H_kv/H⌋. d_k follows from the tensors and the number of heads, the
number of key heads from the rows of keys.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
"""Ends of modules, the names of their tensors, of what may be their output, and the arrangement."""
CUTOFF = 1e-10
"""Matrices of a head below this share of the largest head's count as 0."""
IN_PROJECTION = "in_proj_weight"
"""Of torch.nn.MultiheadAttention; the module has any name."""
KNOWN = (
    "q_proj/k_proj/v_proj, query/key/value, q_lin/k_lin/v_lin, c_attn, qkv_proj, qkv, "
    "query_key_value or in_proj_weight in a module named as by transformers, timm or torch"
)
ATTENTION = re.compile(r"(?i)(?:^|\.)(?!\w*(?:norm|ln))\w*att(?:n|ention)\w*\.")
"""In the names of tensors that are of attention."""
NOT_READ = (
    (r"(?:^|[._])lora[._]|^base_model\.model\.|\.base_layer\.",
     "an adapter (LoRA)", "a whole model: merge the adapter into it"),
    (r"\.(?:qweight|qzeros|scales|g_idx|absmax|quant_map|SCB|weight_(?:packed|scale\w*))$",
     "a quantised tensor", "F64, F32, F16, BF16: dequantise first"),
    (r"\.(?:q_a|kv_a|kv_b)_\w+\.", "latent attention (MLA)", KNOWN),
    (r"\.lambda_[qk]\d$", "differential attention", KNOWN),
)  # fmt: skip
"""Tensors by name, what they are, and what is read."""
BUFFERS = re.compile(
    r"(?:masked_)?bias|rotary_emb\.(?:inv_freq|\w+_cached)|(?:output\.)?LayerNorm\.\w+|(?:\w+\.)*(?:\w*_proj|proj|dense"
    r"|out_lin)\.bias"
)
"""Tensors of an attention module that no weight of attention depends on."""
SINKS = ".sinks"
"""Tensors that weights of attention depend on, and matrices of heads do not."""


@dataclass(frozen=True)
class Layer:
    """The heads of one attention module, in float64.

    Attributes:
        module: its name in the file.
        number: of the layer, where each module has another one; None otherwise.
        matrices: query (H, d, d_k), key (H_kv, d, d_k), value (H_kv, d, d_v), output (H, d_v, d).
        biases: of queries (H, d_k), keys (H_kv, d_k) and values (H_kv, d_v); 0 without any.
        norms: of queries and of keys; empty without.
        gain: of the normalisation before the module (d); None where none is documented.
        centred: whether that normalisation removes the mean.
        passes: how often the model applies the module.
        left: names of tensors that only weights of attention depend on, and that are not read.
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
        """The key head that each query head reads, (H,)."""
        heads, keys = len(self.matrices.query), len(self.matrices.key)
        return np.arange(heads) * keys // heads

    @property
    def normed(self) -> HeadMatrices:
        """Matrices with what is linear in the normalisation of queries and keys."""
        if not self.norms:
            return self.matrices
        query, key, value, output = self.matrices
        return HeadMatrices(self.norms[0].fold(query), self.norms[1].fold(key), value, output)

    @property
    def folded(self) -> HeadMatrices:
        """Matrices as seen from the normalised residual stream: ``(I − 11ᵀ/d) diag(g) W``.

        Those of a head that are nothing beside the other heads' are 0.
        """

        def fold(matrix: np.ndarray) -> np.ndarray:
            scaled = matrix if self.gain is None else self.gain[:, None] * matrix
            folded = scaled - scaled.mean(-2, keepdims=True) if self.centred else scaled
            sizes = abs(folded).max((1, 2), keepdims=True)
            return np.where(sizes > CUTOFF * abs(scaled).max(), folded, 0.0)

        query, key, value, output = self.normed
        return HeadMatrices(fold(query), fold(key), fold(value), output)


def modules(model: Model) -> list[str]:
    """The attention modules of a model, in the order of their numbers.

    Raises:
        InputError: none is known, or there are tensors of attention that are not understood.
    """
    of_attention = [name for name in model.shapes if ATTENTION.search(name)]
    for pattern, got, allowed in NOT_READ:
        for name in of_attention:
            if re.search(pattern, name):
                raise InputError(f"{model.name}: {name}", got, allowed)
    names = {module for name in model.shapes if (module := _module(name))}
    if not names:
        got = next(iter([*of_attention, *model.shapes]), "no tensor")
        raise InputError(f"{model.name}: layout", got, KNOWN)
    roots = tuple(_root(module) for module in names)
    for name in of_attention:
        if not name.startswith(roots):
            raise InputError(f"{model.name}: {name}", "attention of an unknown layout", KNOWN)
    return sorted(names, key=lambda module: re.sub(r"\d+", lambda n: n[0].zfill(9), module))


def layers(model: Model, heads: int | None = None) -> Iterator[Layer]:
    """The layers of a model, read one at a time.

    Args:
        model: an open model.
        heads: H, where no config says it.

    Raises:
        InputError: the layout is not known, a tensor does not fit it or is not understood, or
            nothing says H.
    """
    names = modules(model)
    numbers = [layer_number(module) for module in names]
    numbered = None not in numbers and len(set(numbers)) == len(names)
    for module, number in zip(names, numbers, strict=True):
        yield _layer(model, module, heads, len(names), number if numbered else None)


def _module(name: str) -> str | None:
    """The attention module that a tensor's name makes certain, None for other tensors."""
    if name == IN_PROJECTION or name.endswith(f".{IN_PROJECTION}"):
        return name.removesuffix(IN_PROJECTION).removesuffix(".") or "."
    module, _, last = name.removesuffix(".weight").rpartition(".")
    matches = (_is_of(pattern, module) for pattern, names, *_ in LAYOUTS if last == names[0])
    return module if name.endswith(".weight") and any(matches) else None


def _is_of(pattern: str, module: str) -> bool:
    return re.fullmatch(rf"(?:.*\.)?{pattern}", module) is not None


def _root(module: str) -> str:
    """What the names of all tensors of a module begin with; its output may stand beside it."""
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
    names = [f"{place}.{name}.weight" for place in places for name in family.gain]
    gains = (model.read(name) + family.offset for name in names if name in model.shapes)
    gain = next(gains, None)
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
            allowed = "tensors of attention that a known model_type has: none is left out"
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
    output = next((place for place in places if place in model.shapes), None)
    if output is None:
        raise InputError(f"{model.name}: {module}", "no output matrix", " or ".join(outputs))
    last = model.read(output)
    last = last if arrangement == "columns" else last.T
    if last.ndim != 2:
        raise InputError(f"{model.name}: {output}", last.shape, "a matrix")
    d = last.shape[1]
    heads, documented_width = model.heads(module, d, requested)
    width = len(last) // heads
    if len(last) % heads:
        allowed = f"{heads} heads of one width: is the number of heads right?"
        raise InputError(f"{model.name}: {output}", model.shapes[output], allowed)
    read = [_with_bias(model, prefix + name, d, arrangement == "columns") for name in names]
    groups = 0 if len(read) > 1 else _key_heads(model, module, len(read[0]), heads, width)
    if arrangement == "separate":
        parts = read
    elif arrangement == "groups":
        grouped = read[0].reshape(groups, heads // groups + 2, width, d + 1)
        parts = [
            part.reshape(-1, d + 1) for part in (grouped[:, :-2], grouped[:, -2], grouped[:, -1])
        ]
    else:
        parts = np.split(read[0], [heads * width, (heads + groups) * width])
    sizes = [len(part) for part in parts]
    d_k = sizes[0] // heads
    if documented_width not in (None, sizes[0] / heads):
        allowed = f"{heads} heads of d_k = {documented_width}, as config says"
        raise InputError(f"{model.name}: {module}", f"{sizes[0]} rows of queries", allowed)
    if not d_k or sizes[0] % heads or sizes[1] % d_k or heads % (sizes[1] // d_k or heads + 1):
        raise InputError(f"{model.name}: {module}", sizes, f"q and k rows of {heads} heads")
    keys = sizes[1] // d_k
    documented = count(model.config, ("num_key_value_heads",))
    if documented is not None and arrangement != "groups" and documented != keys:
        raise InputError(
            f"{model.name}: {module}", f"{keys} key heads", f"{documented}, as config says"
        )
    if sizes[2] != keys * width:
        raise InputError(f"{model.name}: {module}", sizes, f"v rows of {keys} heads of {width}")
    shaped = [p.reshape(n, -1, d + 1) for p, n in zip(parts, (heads, keys, keys), strict=True)]
    return shaped, np.ascontiguousarray(last).reshape(heads, width, d)


def _layout(model: Model, module: str) -> tuple[list[str], tuple[str, ...], str]:
    """The layout of a module: names of its tensors, of its outputs, and the arrangement."""
    for pattern, names, outputs, arrangement in LAYOUTS:
        if _is_of(pattern, module) and f"{module}.{names[0]}.weight" in model.shapes:
            return [f"{name}.weight" for name in names], outputs, arrangement
    return [IN_PROJECTION], ("out_proj",), "blocks"


def _with_bias(model: Model, name: str, d: int, transposed: bool) -> np.ndarray:
    """A tensor (rows, d) with its bias, or zeros, as last column."""
    weight = model.read(name)
    if transposed and weight.ndim == 2 and weight.shape[1] == d != len(weight):
        allowed = f"{weight.shape[::-1]}, (in, out) as GPT-2: transpose torch.nn.Linear's (nanoGPT)"
        raise InputError(f"{model.name}: {name}", weight.shape, allowed)
    weight = weight.T if transposed else weight
    if weight.ndim != 2 or weight.shape[1] != d:
        raise InputError(f"{model.name}: {name}", weight.shape, f"a matrix with a side of d = {d}")
    bias_name = name.replace("_weight", "_bias").replace(".weight", ".bias")
    bias = (
        model.read(bias_name, (len(weight),))
        if bias_name in model.shapes
        else np.zeros(len(weight))
    )
    return np.column_stack([weight, bias])


def _key_heads(model: Model, module: str, rows: int, heads: int, width: int) -> int:
    """H_kv of (H + 2H_kv)·d_k rows."""
    keys, remainder = divmod(rows - heads * width, 2 * width)
    if remainder or keys < 1 or heads % keys:
        allowed = f"(H + 2·H_kv)·d_k with H = {heads}, d_k = {width} and H_kv a divisor of H"
        raise InputError(f"{model.name}: {module}", f"{rows} rows", allowed)
    return keys
