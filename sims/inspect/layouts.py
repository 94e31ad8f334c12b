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
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sims.attention.attention import HeadMatrices
from sims.errors import InputError
from sims.inspect.reader import Model, count

LAYOUTS = (
    (r"(?:.*\.)?layers\.\d+\.(?:self_attn|encoder_attn|cross_attn|attention)",
     ("q_proj", "k_proj", "v_proj"), ("o_proj", "out_proj", "dense"), "separate"),
    (r"(?:.*\.)?layer\.\d+\.(?:cross)?attention\.(?:self|attention)",
     ("query", "key", "value"), ("../output.dense",), "separate"),
    (r"(?:.*\.)?albert_layers\.\d+\.attention",
     ("query", "key", "value"), ("dense",), "separate"),
    (r"(?:.*\.)?layer\.\d+\.attention",
     ("q_lin", "k_lin", "v_lin"), ("out_lin",), "separate"),
    (r"(?:transformer\.)?h\.\d+\.attn", ("c_attn",), ("c_proj",), "columns"),
    (r"(?:.*\.)?layers\.\d+\.self_attn", ("qkv_proj",), ("o_proj",), "blocks"),
    (r"(?:.*\.)?blocks\.\d+\.attn", ("qkv",), ("proj",), "blocks"),
    (r"(?:gpt_neox\.)?layers\.\d+\.attention", ("query_key_value",), ("dense",), "groups"),
    (r"(?:transformer\.)?h\.\d+\.self_attention", ("query_key_value",), ("dense",), "groups"),
)  # fmt: skip
"""Modules, the names of their tensors, of what may be their output, and the arrangement."""
IN_PROJECTION = "in_proj_weight"
"""Of torch.nn.MultiheadAttention; the module has any name."""
GAINS = {
    "gpt2": ("ln_1", True), "gpt_neox": ("input_layernorm", True),
    "bloom": ("input_layernorm", True), "falcon": ("input_layernorm|ln_attn", True),
    "vit": ("layernorm_before", True), "deit": ("layernorm_before", True),
    "llama": ("input_layernorm", False), "mistral": ("input_layernorm", False),
    "qwen2": ("input_layernorm", False), "qwen3": ("input_layernorm", False),
    "phi3": ("input_layernorm", False),
}  # fmt: skip
"""Pre-norm models by ``model_type``: the normalisation before attention, and whether it centres."""
KNOWN = (
    "q_proj/k_proj/v_proj, query/key/value, q_lin/k_lin/v_lin, c_attn, qkv_proj, qkv, "
    "query_key_value or in_proj_weight in a module named as by transformers, timm or torch"
)


@dataclass(frozen=True)
class Layer:
    """The heads of one attention module, in float64.

    Attributes:
        module: its name in the file.
        matrices: query (H, d, d_k), key (H_kv, d, d_k), value (H_kv, d, d_v), output (H, d_v, d).
        biases: of queries (H, d_k), keys (H_kv, d_k) and values (H_kv, d_v); 0 without any.
        norms: gains (d_k) of queries and keys (Qwen3); None without any.
        gain: of the normalisation before the module (d); None where none is documented.
        centred: whether that normalisation removes the mean.
        passes: how often the model applies the module.
    """

    module: str
    matrices: HeadMatrices
    biases: tuple[np.ndarray, np.ndarray, np.ndarray]
    norms: tuple[np.ndarray, np.ndarray] | None = None
    gain: np.ndarray | None = None
    centred: bool = False
    passes: int = 1

    @property
    def key_head(self) -> np.ndarray:
        """The key head that each query head reads, (H,)."""
        heads, keys = len(self.matrices.query), len(self.matrices.key)
        return np.arange(heads) * keys // heads

    @property
    def folded(self) -> HeadMatrices:
        """Matrices as seen from the normalised residual stream: ``(I − 11ᵀ/d) diag(g) W``."""

        def fold(matrix: np.ndarray) -> np.ndarray:
            scaled = matrix if self.gain is None else self.gain[:, None] * matrix
            return scaled - scaled.mean(-2, keepdims=True) if self.centred else scaled

        query, key, value, output = self.matrices
        return HeadMatrices(fold(query), fold(key), fold(value), output)


def modules(model: Model) -> list[str]:
    """The attention modules of a model, in the order of their numbers.

    Raises:
        InputError: none is known.
    """
    names = {module for name in model.shapes if (module := _module(name))}
    if not names:
        raise InputError(f"{model.name}: layout", next(iter(model.shapes), "no tensor"), KNOWN)
    return sorted(names, key=lambda s: [int(p) if p.isdigit() else p for p in s.split(".")])


def layers(model: Model, heads: int | None = None) -> Iterator[Layer]:
    """The layers of a model, read one at a time.

    Args:
        model: an open model.
        heads: H, where no config says it.

    Raises:
        InputError: the layout is not known, a tensor does not fit it, or nothing says H.
    """
    number, names = model.heads(heads), modules(model)
    for module in names:
        yield _layer(model, module, number, len(names))


def _module(name: str) -> str | None:
    """The attention module that a tensor's name makes certain, None for other tensors."""
    if name == IN_PROJECTION or name.endswith(f".{IN_PROJECTION}"):
        return name.removesuffix(IN_PROJECTION).removesuffix(".") or "."
    path, _, kind = name.rpartition(".")
    module, _, last = path.rpartition(".")
    matches = (re.fullmatch(pattern, module) for pattern, names, *_ in LAYOUTS if last == names[0])
    return module if kind == "weight" and any(matches) else None


def _layer(model: Model, module: str, heads: int, depth: int) -> Layer:
    rows, output = _matrices(model, module, heads)
    d = output.shape[-1]
    norms = [model.read_or_none(f"{module}.{name}_norm.weight") for name in "qk"]
    norm, centred = GAINS.get(str(model.config.get("model_type")), ("", False))
    above = module.rpartition(".")[0]
    names = [f"{p}.{n}.weight" for p in (above, above.rpartition(".")[0]) for n in norm.split("|")]
    gains = map(model.read_or_none, names)
    gain = next((candidate for candidate in gains if candidate is not None), None)
    passes = model.config.get("num_hidden_layers", depth) if "albert_layers" in module else 1
    query, key, value = (part[..., :d].swapaxes(-1, -2) for part in rows)
    return Layer(
        module,
        HeadMatrices(query, key, value, output),
        (rows[0][..., d], rows[1][..., d], rows[2][..., d]),
        None if norms[0] is None or norms[1] is None else (norms[0], norms[1]),
        gain,
        centred and gain is not None,
        max(1, passes // depth) if isinstance(passes, int) else 1,
    )


def _matrices(model: Model, module: str, heads: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of queries, keys and values by heads, (heads, d_k, d + 1), and W_O (H, d_v, d).

    The last column of rows is their bias.
    """
    prefix = "" if module == "." else f"{module}."
    names, outputs, arrangement = _layout(model, module)
    output = next((o for name in outputs if (o := _beside(prefix, name)) in model.shapes), None)
    if output is None:
        raise InputError(f"{model.name}: {module}", "no output matrix", " or ".join(outputs))
    last = model.read(output)
    last = last if arrangement == "columns" else last.T
    if last.ndim != 2 or len(last) % heads:
        allowed = f"{heads} heads of one width: is the number of heads right?"
        raise InputError(f"{model.name}: {output}", model.shapes[output], allowed)
    width, d = len(last) // heads, last.shape[1]
    read = [_with_bias(model, prefix + name, d, arrangement == "columns") for name in names]
    if arrangement == "separate":
        parts = read
    elif arrangement == "groups":
        groups = _key_heads(model, module, len(read[0]), heads, width)
        grouped = read[0].reshape(groups, heads // groups + 2, width, d + 1)
        parts = [
            part.reshape(-1, d + 1) for part in (grouped[:, :-2], grouped[:, -2], grouped[:, -1])
        ]
    else:
        groups = _key_heads(model, module, len(read[0]), heads, width)
        parts = np.split(read[0], [heads * width, (heads + groups) * width])
    sizes = [len(part) for part in parts]
    d_k = sizes[0] // heads
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
        if re.fullmatch(pattern, module) and f"{module}.{names[0]}.weight" in model.shapes:
            return [f"{name}.weight" for name in names], outputs, arrangement
    return [IN_PROJECTION], ("out_proj",), "blocks"


def _beside(prefix: str, name: str) -> str:
    """The tensor of an output; ``../`` is the module above."""
    if name.startswith("../"):
        prefix, name = f"{prefix[:-1].rpartition('.')[0]}.", name[3:]
    return f"{prefix}{name}.weight"


def _with_bias(model: Model, name: str, d: int, transposed: bool) -> np.ndarray:
    """A tensor (rows, d) with its bias, or zeros, as last column."""
    weight = model.read(name)
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
