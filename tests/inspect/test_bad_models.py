"""Hostile models, configs and activations: one line, exit code 2, nothing written, no warning."""

import json
import os
import pickle
import struct
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from sims.base.errors import InputError
from sims.inspect import Model, reader
from tests.cli.small import run
from tests.inspect.models import LAYOUTS, LLAMA, D, H, inputs, matrices, write

Q, MODEL = f"{LLAMA}.q_proj.weight", Path("model", "model.safetensors")
BLOCKS = f"{LLAMA}.qkv_proj.weight"
TENSORS = LAYOUTS["llama"](*matrices(2))


def tensors(change=None, **more):
    """The model with tensors changed, dropped (None) or added."""

    def make():
        kept = {**TENSORS, **(change or {}), **more}
        write(Path("model"), {k: v for k, v in kept.items() if v is not None})

    return make


def content(edit):
    """The model's file with its bytes changed."""
    return lambda: MODEL.write_bytes(edit(MODEL.read_bytes()))


def header(edit):
    """The model's file with the text of its header changed, its length right."""

    def change(data):
        size = struct.unpack("<Q", data[:8])[0]
        text = edit(json.loads(data[8 : 8 + size]))
        new = text if isinstance(text, bytes) else json.dumps(text).encode()
        return struct.pack("<Q", len(new)) + new + data[8 + size :]

    return content(change)


def entry(**fields):
    return header(lambda h: h | {Q: h[Q] | fields})


def config(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return lambda: Path("model", "config.json").write_text(text)


def index(value):
    def make():
        MODEL.unlink()
        text = value if isinstance(value, str) else json.dumps(value)
        Path("model", "model.safetensors.index.json").write_text(text)

    return make


def given(arrays, name="x.npz", **kind):
    """Activations, and a config that says how heads attend."""

    def make():
        config({"num_attention_heads": H, **(kind or {"model_type": "bert"})})()
        if isinstance(arrays, bytes):
            Path(name).write_bytes(arrays)
        else:
            np.savez(name, **arrays)

    return make


def plain(make, *options):
    return make, ["--heads", str(H), *options]


def used(make, *options):
    return make, ["--activations", "x.npz", *options]


NAN = TENSORS[Q].copy()
NAN[0, 0] = np.nan
X = inputs()
HOLE = np.where(np.arange(D) == 3, np.inf, X)
FEW = {"0": inputs(4, 3)}
MASK, FIRST = np.ones((12, 20)), (np.arange(20) < 1).astype(float)

ADAPTED = f"base_model.model.{LLAMA}.q_proj.lora_A.weight"
LINEAR = {k: t.T if t.ndim == 2 else t for k, t in LAYOUTS["gpt2"](*matrices()).items()}
NOT_UNDERSTOOD = {
    "q_norm.weight": "unknown to model_type None",
    "gate_proj.weight": "unknown to model_type None",
    "relative_attention_bias.weight": "unknown to model_type None",
    "rotary_emb.freqs": "unknown to model_type None",
    "k_proj.qweight": "a quantised tensor",
    "v_proj.weight.absmax": "a quantised tensor",
    "kv_a_proj_with_mqa.weight": "latent attention",
    "lambda_q1": "differential attention",
}
"""Tensors of an attention module, and what is said of them."""


def shape_of_heads(**settings):
    return config({"num_attention_heads": H} | settings), []


ROWS = {
    # the file
    **{
        f"a {end}": (*plain(lambda end=end: MODEL.rename(f"m{end}")), f"got '{end}'", f"m{end}")
        for end in (".onnx", ".gguf", ".h5", ".pt", ".npz")
    },
    "Git LFS": (*plain(content(lambda b: b"version https://git-lfs" + b)), "or Git LFS pointer"),
    "an adapter": (*plain(tensors({ADAPTED: np.ones((2, D))})), "merge the adapter into it"),
    "nanoGPT": (*plain(lambda: write(Path("model"), LINEAR)), "(24, 72), (in, out) as GPT-2"),
    "ZeRO-3": (*plain(tensors({Q: np.ones(0)})), "ZeRO-3 saves placeholders"),
    **{
        name: (*plain(tensors({f"{LLAMA}.{name}": np.ones(6)})), f"{LLAMA}.{name}: got '{words}")
        for name, words in NOT_UNDERSTOOD.items()
    },
    "other attention beside it": (
        *plain(tensors({"model.layers.1.linear_attn.A_log": np.ones(4)})),
        "linear_attn.A_log: got 'attention of an unknown layout'",
    ),
    "two of one name": (*plain(tensors({f"module.{Q}": np.ones(4)})), "a duplicate tensor"),
    "truncated": (*plain(content(lambda b: b[:-9])), "not fully covered"),
    "huge header": (*plain(content(lambda b: b"\xff" * 8 + b[8:])), "header too large"),
    "a pickle": (*plain(content(lambda b: pickle.dumps([1] * 99))), "a complete .safetensors"),
    "other type": (*plain(entry(dtype="F63")), "a complete .safetensors file"),
    "missing": (*plain(MODEL.unlink), "one with model.safetensors or its .index.json"),
    "a .bin": (*plain(lambda: MODEL.rename("m.bin")), "pickles can run code", "m.bin"),
    "no such file": (*plain(lambda: None), "file not found", "other.safetensors"),
    "a pipe": (*plain(lambda: os.mkfifo("pipe")), "file not found", "pipe"),
    # shards
    "index of text": (*plain(index("weights")), "a JSON file"),
    "index without map": (*plain(index({})), "weight_map: got 'NoneType'"),
    "shard that is not there": (*plain(index({"weight_map": {Q: "1.safetensors"}})), "not found"),
    "shard elsewhere": (*plain(index({"weight_map": {Q: "../../x"}})), "files of the same folder"),
    # tensors
    "NaN": (*plain(tensors({Q: NAN})), f"{Q}: got 'NaN or infinity'; allowed: finite"),
    "integers": (*plain(entry(dtype="I64")), "got 'I64'; allowed: F64, F32, F16, BF16 (dequant"),
    "no key": (*plain(tensors({f"{LLAMA}.k_proj.weight": None})), "k_proj.weight: got 'no tensor'"),
    "no output": (*plain(tensors({f"{LLAMA}.o_proj.weight": None})), "got 'no output matrix'"),
    "flat": (*plain(tensors({Q: np.ones(D)})), "allowed: a matrix with a side of d = 24"),
    "wide": (*plain(tensors({Q: np.ones((D, 7))})), "allowed: a matrix with a side of d = 24"),
    "odd keys": (
        *plain(tensors({f"{LLAMA}.k_proj.weight": np.ones((7, D)), f"{LLAMA}.k_proj.bias": None})),
        "q and k rows of 4 heads",
    ),
    "odd values": (
        *plain(tensors({f"{LLAMA}.v_proj.weight": np.ones((6, D)), f"{LLAMA}.v_proj.bias": None})),
        "v rows of 2 heads of 6",
    ),
    "short bias": (*plain(tensors({f"{LLAMA}.q_proj.bias": np.ones(3)})), "shape (24,)"),
    "odd blocks": (*plain(tensors({Q: None, BLOCKS: np.ones((31, D))})), "H_kv a divisor of H"),
    "unknown layout": (
        *plain(lambda: write(Path("model"), {"block.0.mixer.wqkv": np.ones((3, 3))})),
        "layout: got 'block.0.mixer.wqkv'; allowed: q_proj/k_proj/v_proj, query/key/value",
    ),
    "no tensor at all": (*plain(lambda: write(Path("model"), {})), "layout: got 'no tensor'"),
    # the number of heads
    "nothing says it": (lambda: None, [], "not known: give --heads N"),
    "null": (config({"num_attention_heads": None}), [], "not known: give --heads N"),
    "text": (config({"num_attention_heads": "4"}), [], "config.num_attention_heads: got '4'"),
    "true": (config({"num_attention_heads": True}), [], "got True; allowed: an integer"),
    "zero": (lambda: None, ["--heads", "0"], "number of heads: got 0"),
    "no divisor": (lambda: None, ["--heads", "5"], "check the number of heads"),
    "other count": (*plain(config({"n_head": 2})), "--heads: got 4; allowed: 2, as config.json"),
    "two models": (
        config({"text_config": {"num_heads": 4}, "vision_config": {"num_heads": 2}}),
        [],
        "allowed: one number",
    ),
    "other groups": (
        *plain(config({"num_key_value_heads": 4})),
        "got '2 key heads'; allowed: 4, as config says",
    ),
    "config of text": (*plain(config("heads = 4")), "config.json: got 'Expecting value"),
    "config a list": (*plain(config([4])), "got 'list'; allowed: a JSON object"),
    "deep config": (*plain(config("[" * 99_999)), "a JSON file"),
    "other width": (
        *shape_of_heads(head_dim=3),
        "24 rows of queries'; allowed: 4 heads of d_k = 3",
    ),
    "pruned, and not": (*shape_of_heads(pruned_heads={"0": [1]}), "3 heads"),
    "pruned list": (*shape_of_heads(pruned_heads=[1]), "config.pruned_heads"),
    # activations
    "sinks": (
        lambda: (tensors({f"{LLAMA}.sinks": np.ones(4)})(), given({"0": X})()),
        ["--activations", "x.npz"],
        "got 'attention sinks'",
    ),
    "too few tokens": (*used(given(FEW)), "0: tokens: got 12; allowed: at least 10 for each of"),
    "too few sequences": (*used(given({"0": X[:3]})), "0: sequences: got 3; allowed: at least 4"),
    "padding": (*used(given({"0": HOLE})), "finite numbers; mark padding by attention_mask"),
    "mask of another shape": (
        *used(given({"0": X, "attention_mask": MASK[:, 1:]})),
        "attention_mask: got 'float64 of shape (12, 19)'; allowed: 0 and 1 of shape (12, 20)",
    ),
    "mask of scores": (*used(given({"0": X, "attention_mask": -MASK})), "allowed: 0 and 1 of"),
    "mask with gaps": (
        *used(given({"0": X, "attention_mask": np.where(np.arange(20) % 9, MASK, 0)})),
        "attention_mask: got 'gaps'",
    ),
    "single tokens": (
        *used(given({"0": X, "attention_mask": np.where(np.arange(12)[:, None] < 1, FIRST, MASK)})),
        "0: tokens of a sequence: got 1; allowed: at least 2",
    ),
    "covariance of another width": (*used(given({"0": np.eye(5)})), "semidefinite matrix (24, 24)"),
    "covariance of whole numbers": (*used(given({"0": np.eye(D, dtype=int)})), "got 'int64 of"),
    "no covariance": (*used(given({"0": TENSORS[Q]})), "not symmetric, finite and positive"),
    "negative covariance": (
        *used(given({"0": np.diag(np.arange(D) - 1.0)})),
        "got 'a matrix with a negative eigenvalue'",
    ),
    "two activations": (
        *used(given({"0": X}), "--activations", "y.npz"),
        "--activations: got '2 files'; allowed: one file, and a second with --compare MODEL",
    ),
    "inputs of another width": (
        *used(given({"0": X[..., :5]})),
        "allowed: shape (sequence, token, 24)",
    ),
    "one sequence": (*used(given({"0": X[0]})), "semidefinite matrix (24, 24)"),
    "token ids": (*used(given({"0": X.astype(int)})), "allowed: floating-point numbers"),
    "objects": (*used(given({"0": np.array([{}])})), "Object arrays cannot be loaded"),
    "another layer": (*used(given({"0": X, "7": X})), "x.npz: 7: got 'of no layer'"),
    "none": (
        *used(lambda: config({"num_attention_heads": H, "model_type": "bert"})()),
        "not found",
    ),
    "no npz": (*used(given(pickle.dumps([1]))), "an npz file"),
    "constant": (
        lambda: (tensors({f"{LLAMA}.v_proj.weight": np.zeros((12, D))})(), given({"0": X})()),
        ["--activations", "x.npz"],
        "got 'an output without variance'",
    ),
    "one prompt": (*used(given({"0": X[:1].repeat(9, 0)})), "0: sequences: got 1; allowed"),
    "three prompts": (
        *used(given({"0": np.concatenate([X[:3], X[:3].astype("f2")])})),
        "0: sequences: got 3; allowed: at least 4 different ones",
    ),
    "unknown model": (*used(given({"0": X}, model_type="mamba")), "or --attention causal or full"),
    "no attention": (*used(given({"0": X}, n="")), "config.model_type: got None"),
    "other attention": (
        *used(given({"0": X}), "--attention", "causal"),
        "--attention: got 'causal'; allowed: as config.model_type bert has it",
    ),
    "scaled rotation": (
        *used(given({"0": X}, model_type="llama", rope_scaling={"rope_type": "llama3"})),
        "config.rope_scaling: got",
    ),
    "window": (
        *used(given({"0": X}, model_type="mistral", sliding_window=8)),
        "tokens: got 20; allowed: at most the sliding window 8",
    ),
    # options
    "tolerance": (*plain(lambda: None, "--tolerance", "1"), "a share above 0 and below 1"),
    "limit": (*plain(lambda: None, "--fail-above", "heads"), "allowed: NAME=NUMBER"),
    "limit of nothing": (*plain(lambda: None, "--fail-above", "overlap_exces=1"), "did you mean"),
    "output": (*plain(lambda: None, "--output", "a.png"), "a file whose name ends in .nc"),
    "compared": (*plain(lambda: None, "--compare", "x.nc"), "x.nc: file not found"),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_cannot_be_read_is_one_line(tmp_path, monkeypatch, capsys, recwarn, name):
    monkeypatch.chdir(tmp_path)
    tensors()()
    make, options, words, *model = ROWS[name]
    make()
    before = set(Path().rglob("*"))
    assert run("inspect", *(model or ["model"]), *options) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), list(recwarn)) == ("", 1, [])
    assert words in err
    assert err[:-1].isprintable()
    assert set(Path().rglob("*")) == before


NUMBERS = st.sampled_from([-8, 0, 1, 2, 8, 16, 2**31, 2**60, 2**64, 0.5, None])
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F64", "U8", "F63", 4]),
        "shape": st.lists(NUMBERS, max_size=2),
        "data_offsets": st.lists(NUMBERS, min_size=1, max_size=3),
    }
)
WHOLE = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
HEADERS = st.dictionaries(st.sampled_from(["b", "__metadata__"]), ENTRY, max_size=2)


@pytest.mark.parametrize("mapped", [True, False])
@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given_by(
    header=st.one_of(HEADERS, HEADERS.map(lambda header: header | WHOLE)),
    junk=st.one_of(st.none(), st.binary(max_size=20)),
    more=st.sampled_from([0, 0, 0, -1, 5, 2**40, 2**63]),
    data=st.sampled_from([8, 16, 7]),
)
def test_a_header_is_read_as_by_safetensors_or_refused(
    tmp_path_factory, mapped, header, junk, more, data
):
    """Where a file cannot be mapped, what is refused may be refused later."""
    path = tmp_path_factory.getbasetemp() / "header.safetensors"
    text = json.dumps(header).encode() if junk is None else junk
    path.write_bytes(struct.pack("<Q", max(0, len(text) + more)) + text + bytes(data))
    try:
        with safe_open(path, "np") as file:
            names = set(file.keys())
    except SafetensorError:
        names = None
    with pytest.MonkeyPatch.context() as patch:
        if not mapped:
            patch.setattr(reader, "safe_open", Mock(side_effect=MemoryError))
        try:
            model = Model(path)
            read = {name for name in model.shapes if model.read(name).size}
        except InputError:
            read = None
    assert read == names or (names != {"a"} and (read is None or not mapped))
