"""Hostile models, configs and activations: one line, exit code 2, nothing written, no warning."""

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.cli import small as helpers
from tests.inspect.models import LAYOUTS, LLAMA, D, H, inputs, matrices, write

Q, MODEL = f"{LLAMA}.q_proj.weight", Path("model", "model.safetensors")
BLOCKS = f"{LLAMA}.qkv_proj.weight"
TENSORS = LAYOUTS["llama"](*matrices(2))


def write_tensors(change):
    """Write the model with tensors changed, dropped (None) or added."""
    kept = TENSORS | change
    write(Path("model"), {name: values for name, values in kept.items() if values is not None})


def content(edit):
    """The model's file with its bytes changed."""
    return lambda: MODEL.write_bytes(edit(MODEL.read_bytes()))


def entry(**fields):
    """The model's file with another entry of a tensor in its header, whose length is right."""

    def change(data):
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])
        new = json.dumps(header | {Q: header[Q] | fields}).encode()
        return struct.pack("<Q", len(new)) + new + data[8 + size :]

    return content(change)


def write_config(value):
    text = value if isinstance(value, str) else json.dumps(value)
    Path("model", "config.json").write_text(text)


def index(value):
    return lambda: MODEL.rename("model/model.safetensors.index.json").write_text(value)


def write_inputs(arrays):
    """Activations: of layer 0, by name, or the bytes of the file."""
    if isinstance(arrays, bytes):
        Path("x.npz").write_bytes(arrays)
    else:
        np.savez("x.npz", **(arrays if isinstance(arrays, dict) else {"0": arrays}))


def corrupted():
    """A compressed array, damaged."""
    np.savez_compressed("x.npz", **{"0": X})
    data = bytearray(Path("x.npz").read_bytes())
    data[200:220] = bytes(20)
    return bytes(data)


NAN = TENSORS[Q].copy()
NAN[0, 0] = np.nan
X = inputs()
MASK = np.ones((12, 20))
PLACES = np.arange(20)
LINEAR = {k: t.T if t.ndim == 2 else t for k, t in LAYOUTS["gpt2"](*matrices()).items()}
NOT_UNDERSTOOD = {
    "q_norm.weight": "unknown to model_type None",
    "rotary_emb.freqs": "unknown to model_type None",
    "k_proj.qweight": "a quantised tensor",
    "v_proj.weight.absmax": "a quantised tensor",
    "kv_a_proj_with_mqa.weight": "latent attention",
    "lambda_q1": "differential attention",
}
"""Tensors of an attention module, and what is said of them."""
FILES = {
    **{
        f"a {end}": (lambda end=end: MODEL.rename(f"m{end}"), f"got '{end}'", f"m{end}")
        for end in (".onnx", ".h5", ".pt", ".npz")
    },
    "Git LFS": (content(lambda b: b"version https://git-lfs" + b), "or Git LFS pointer"),
    "nanoGPT": (lambda: write(Path("model"), LINEAR), "(24, 72), (in, out) as GPT-2"),
    "truncated": (content(lambda b: b[:-9]), "not fully covered"),
    "huge header": (content(lambda b: b"\xff" * 8 + b[8:]), "header too large"),
    "a pickle": (content(lambda b: pickle.dumps([1] * 99)), "a complete .safetensors"),
    "other type": (entry(dtype="F63"), "a complete .safetensors or"),
    "integers": (entry(dtype="I64"), "got 'I64'; allowed: F64, F32, F16, BF16 (dequant"),
    "missing": (MODEL.unlink, "one with model.safetensors or its .index.json"),
    "a .bin": (lambda: MODEL.rename("m.bin"), "pickles can run code", "m.bin"),
    "no such file": (lambda: None, "file not found", "other.safetensors"),
    "a pipe": (lambda: os.mkfifo("pipe"), "file not found", "pipe"),
    "index without map": (index("{}"), "weight_map: got 'NoneType'"),
    "shard that is not there": (index('{"weight_map": {"q": "1.safetensors"}}'), "not found"),
    "shard elsewhere": (index('{"weight_map": {"q": "../../x"}}'), "files of the same folder"),
    "unknown layout": (
        lambda: write(Path("model"), {"block.0.mixer.wqkv": np.ones((3, 3))}),
        "layout: got 'block.0.mixer.wqkv'; allowed: q_proj/k_proj/v_proj, query/key/value",
    ),
    "no tensor at all": (lambda: write(Path("model"), {}), "layout: got 'no tensor'"),
}
"""What makes the file, words of the line, and the path if it is another."""
CHANGES = {
    **{
        name: ({f"{LLAMA}.{name}": np.ones(6)}, f"{LLAMA}.{name}: got '{words}")
        for name, words in NOT_UNDERSTOOD.items()
    },
    "an adapter": (
        {f"base_model.model.{LLAMA}.q_proj.lora_A.weight": np.ones((2, D))},
        "merge the adapter into it",
    ),
    "ZeRO-3": ({Q: np.ones(0)}, "ZeRO-3 saves placeholders"),
    "other attention beside it": (
        {"model.layers.1.linear_attn.A_log": np.ones(4)},
        "linear_attn.A_log: got 'attention of an unknown layout'",
    ),
    "two of one name": ({f"module.{Q}": np.ones(4)}, "a duplicate tensor"),
    "NaN": ({Q: NAN}, f"{Q}: got 'NaN or infinity'; allowed: finite"),
    "no key": ({f"{LLAMA}.k_proj.weight": None}, "k_proj.weight: got 'no tensor'"),
    "no output": ({f"{LLAMA}.o_proj.weight": None}, "got 'no output matrix'"),
    "flat": ({Q: np.ones(D)}, "allowed: a matrix with a side of d = 24"),
    "odd keys": (
        {f"{LLAMA}.k_proj.weight": np.ones((7, D)), f"{LLAMA}.k_proj.bias": None},
        "q and k rows of 4 heads",
    ),
    "odd values": (
        {f"{LLAMA}.v_proj.weight": np.ones((6, D)), f"{LLAMA}.v_proj.bias": None},
        "v rows of 2 heads of 6",
    ),
    "short bias": ({f"{LLAMA}.q_proj.bias": np.ones(3)}, "shape (24,)"),
    "odd blocks": ({Q: None, BLOCKS: np.ones((31, D))}, "H_kv a divisor of H"),
}
"""Tensors that are changed, and words of the line."""
CONFIGS = {
    "nothing says it": ({}, "not known: give --heads N"),
    "text": ({"num_attention_heads": "4"}, "config.num_attention_heads: got '4'"),
    "two models": (
        {"text_config": {"num_heads": 4}, "vision_config": {"num_heads": 2}},
        "allowed: one number",
    ),
    "other groups": (
        {"n_head": H, "num_key_value_heads": 4},
        "got '2 key heads'; allowed: 4, as config says",
    ),
    "text for all": ("heads = 4", "config.json: got 'Expecting value"),
    "a list": ([4], "got 'list'; allowed: a JSON object"),
    "deep": ("[" * 99_999, "a JSON file"),
    "other width": (
        {"n_head": H, "head_dim": 3},
        "24 rows of queries'; allowed: 4 heads of d_k = 3",
    ),
    "pruned": ({"n_head": H, "pruned_heads": {"0": [1]}}, "config.pruned_heads: got {'0': [1]}"),
}
"""Content of config.json, and words of the line."""
BERT = {"num_attention_heads": H, "model_type": "bert"}
ACTIVATIONS = {
    "too few tokens": (inputs(4, 3), "0: tokens: got 12; allowed: at least 10 for each of"),
    "three prompts": (
        np.concatenate([X[:3], X[:3].astype("f2")]),
        "0: sequences: got 3; allowed: at least 4 different ones",
    ),
    "padding": (
        np.where(np.arange(D) == 3, np.inf, X),
        "finite numbers; mark padding by attention_mask",
    ),
    "mask of another shape": (
        {"0": X, "attention_mask": MASK[:, 1:]},
        "attention_mask: got 'float64 of shape (12, 19)'; allowed: 0 and 1 of shape (12, 20)",
    ),
    "mask with gaps": (
        {"0": X, "attention_mask": MASK * (PLACES % 9 > 0)},
        "attention_mask: got 'gaps'",
    ),
    "single tokens": (
        {"0": X, "attention_mask": MASK * (PLACES < 1)},
        "0: tokens of a sequence: got 1; allowed: at least 2",
    ),
    "covariance of another width": (np.eye(5), "semidefinite matrix (24, 24)"),
    "no covariance": (TENSORS[Q], "not symmetric, finite and positive"),
    "negative covariance": (
        np.diag(np.arange(D) - 1.0),
        "got 'a matrix with a negative eigenvalue'",
    ),
    "inputs of another width": (X[..., :5], "allowed: shape (sequence, token, 24)"),
    "one sequence": (X[0], "semidefinite matrix (24, 24)"),
    "token ids": (X.astype(int), "allowed: floating-point numbers"),
    "objects": (np.array([{}]), "Object arrays cannot be loaded"),
    "another layer": ({"0": X, "7": X}, "x.npz: 7: got 'of no layer'"),
    "no npz": (pickle.dumps([1]), "an npz file"),
    "damaged": (corrupted, "allowed: an array"),
    "two activations": (
        X,
        "--activations: got '2 files'; allowed: one file, and a second with --compare MODEL",
        BERT,
        "--activations",
        "y.npz",
    ),
    "other attention": (
        X,
        "--attention: got 'causal'; allowed: as config.model_type bert has it",
        BERT,
        "--attention",
        "causal",
    ),
    "unknown model": (X, "or --attention causal or full", BERT | {"model_type": "mamba"}),
    "no attention": (X, "config.model_type: got None", {"n_head": H}),
    "scaled rotation": (
        X,
        "config.rope_scaling: got",
        BERT | {"model_type": "llama", "rope_scaling": {"rope_type": "llama3"}},
    ),
    "window": (
        X,
        "tokens: got 20; allowed: at most the sliding window 8",
        BERT | {"model_type": "mistral", "sliding_window": 8},
    ),
}
"""Activations, words of the line, and the config and options if they are others."""
OPTIONS = {
    "--heads 0": "number of heads: got 0",
    "--heads 5": "check the number of heads",
    "--heads 4 --config other.json": "--heads: got 4; allowed: 2, as config.json",
    "--heads 4 --tolerance 1": "a share above 0 and below 1",
    "--heads 4 --fail-above heads": "allowed: NAME=NUMBER",
    "--heads 4 --fail-above overlap_exces=1": "did you mean",
    "--heads 4 --fail-above redundant_share=1": "measured numbers, which need --activations with",
    "--heads 4 --output a.png": "a file whose name ends in .nc",
    "--heads 4 --compare x.nc": "x.nc: file not found",
    "--heads 4 --attention full --activations z.npz": "z.npz: file not found",
}


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys, recwarn):
    """Assertion that a report is refused in one line, and writes nothing."""
    monkeypatch.chdir(tmp_path)
    write_tensors({})

    def check(words, *arguments):
        helpers.refused(capsys, recwarn, words, "inspect", *arguments)

    return check


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_model_is_refused(refused, name):
    make, words, *path = FILES[name]
    make()
    refused(words, *(path or ["model"]), "--heads", str(H))


@pytest.mark.parametrize("name", CHANGES)
def test_tensors_that_fit_no_layout_are_refused(refused, name):
    change, words = CHANGES[name]
    write_tensors(change)
    refused(words, "model", "--heads", str(H))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_gives_no_heads_is_refused(refused, name):
    config, words = CONFIGS[name]
    write_config(config)
    refused(words, "model")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_that_cannot_be_measured_are_refused(refused, name):
    arrays, words, *rest = ACTIVATIONS[name]
    config, *options = rest or [BERT]
    write_config(config)
    write_inputs(arrays() if callable(arrays) else arrays)
    refused(words, "model", "--activations", "x.npz", *options)


@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_mean_nothing_are_refused(refused, options):
    Path("other.json").write_text('{"n_head": 2}')
    refused(OPTIONS[options], "model", *options.split())


@pytest.mark.parametrize(
    ("tensor", "values", "words"),
    [
        ("sinks", np.ones(4), "got 'attention sinks'"),
        ("v_proj.weight", np.zeros((12, D)), "got 'an output without variance'"),
    ],
)
def test_attention_that_cannot_be_measured_is_refused(refused, tensor, values, words):
    write_tensors({f"{LLAMA}.{tensor}": values})
    write_config(BERT)
    write_inputs(X)
    refused(words, "model", "--activations", "x.npz")
