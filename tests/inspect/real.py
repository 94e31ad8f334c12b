"""Two small trained models of packages: converted to safetensors, and run forward in NumPy."""

import collections
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.special import erf

from sims.attention.attention import layer_norm
from sims.inspect import Model, layers
from sims.inspect.patterns import Rule, projections, weights

ROOT = Path(__file__).parents[2]
STORED = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
ALLOWED = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): lambda *given: given[:4],
    **{("torch", name): name for name in STORED},
}
"""All that a checkpoint may name; what else it names raises, or becomes an empty object."""
RXN = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
ANTIBODY = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYC"
    "AKDRLSITIRPRYYGLDVWGQGTLVTVSS"
)
TOKEN = re.compile(r"\[[^\]]+]|Br?|Cl?|>>|[NOSPFIbcnops().=#+\\/:~@?>*$-]|%[0-9]{2}|[0-9]")


class Empty:
    def __setstate__(self, state):
        pass


class Checkpoint(pickle.Unpickler):
    """Reads torch's old format: tensors as (storage, offset, shape, strides), nothing is run."""

    def __init__(self, file):
        super().__init__(file)
        self.kinds = {}

    def find_class(self, module, name):
        if module in ("argparse", "fairseq.meters"):
            return Empty
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return ALLOWED[module, name]

    def persistent_load(self, pid):
        self.kinds[pid[2]] = pid[1]
        return pid


def tensors(path):
    """The floating-point tensors of a checkpoint, by name."""
    with path.open("rb") as file:
        for _ in range(3):
            Checkpoint(file).load()
        reader = Checkpoint(file)
        content = reader.load()
        storages = {}
        for key in Checkpoint(file).load():
            count = int.from_bytes(file.read(8), "little")
            kind = np.dtype(STORED[reader.kinds[key]])
            storages[key] = np.frombuffer(file.read(count * kind.itemsize), kind)
    found = {}
    for name, (stored, offset, shape, strides) in content.get("model", content).items():
        values = storages[stored[2]][offset:]
        steps = [values.itemsize * step for step in strides]
        found[name] = np.ascontiguousarray(np.lib.stride_tricks.as_strided(values, shape, steps))
    return {name: each for name, each in found.items() if each.dtype.kind == "f"}


def converted(inside, folder):
    """A package's checkpoint as model.safetensors in a folder; the folder that it lies in."""
    source = Path(os.environ.get("SIMS_MODELS", ROOT / ".venv" / "models"), inside)
    if not source.is_file():
        pytest.skip("no trained models: make models")
    save_file(tensors(source), folder / "model.safetensors")
    return source.parent


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


class Encoder:
    """A post-norm encoder; queries, keys and values come from :mod:`sims.inspect`."""

    def __init__(self, folder, heads=None):
        model = Model(folder)
        self.layers = [layer for layer in layers(model, heads) for _ in range(layer.passes)]
        self.read = {name: model.read(name) for name in model.shapes}

    def linear(self, x, name):
        return x @ self.read[f"{name}.weight"].T + self.read[f"{name}.bias"]

    def norm(self, x, name):
        return layer_norm(x, 1e-9) * self.read[f"{name}.weight"] + self.read[f"{name}.bias"]

    def passed(self, x, names):
        """Inputs of every layer, and the last one's output."""
        met = []
        for layer, (output, first, inner, outer, last) in zip(self.layers, names, strict=True):
            met.append(x)
            query, key, value = projections(layer, x, Rule(False))
            heads = weights(layer, query, key, Rule(False)) @ value[layer.key_head]
            attended = (heads @ layer.matrices.output).sum(0) + self.read[f"{output}.bias"]
            x = self.norm(x + attended, first)
            x = self.norm(x + self.linear(gelu(self.linear(x, inner)), outer), last)
        return x, np.array(met)


def reaction(encoder, vocabulary, text):
    """Tokens, the tokens that ALBERT recovers, and inputs of its twelve passes."""
    ids = np.array([12, *(vocabulary[token] for token in TOKEN.findall(text)), 13])
    read, own = encoder.read, "albert.encoder.albert_layer_groups.0.albert_layers.0"
    x = read["albert.embeddings.word_embeddings.weight"][ids]
    x = x + read["albert.embeddings.position_embeddings.weight"][: len(ids)]
    x = encoder.norm(
        x + read["albert.embeddings.token_type_embeddings.weight"][0], "albert.embeddings.LayerNorm"
    )
    x = encoder.linear(x, "albert.encoder.embedding_hidden_mapping_in")
    names = ("attention.dense", "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm")
    x, met = encoder.passed(x, [[f"{own}.{name}" for name in names]] * len(encoder.layers))
    x = encoder.norm(gelu(encoder.linear(x, "predictions.dense")), "predictions.LayerNorm")
    return ids, encoder.linear(x, "predictions.decoder").argmax(-1), met


def antibody(encoder, text):
    """Tokens, the tokens that the antibodies' RoBERTa recovers, and inputs of its layers."""
    ids = np.array([0, *("ACDEFGHIKLMNPQRSTVWY".index(letter) + 4 for letter in text), 2])
    read, own = encoder.read, "decoder.sentence_encoder"
    x = (
        read[f"{own}.embed_tokens.weight"][ids]
        + read[f"{own}.embed_positions.weight"][2:][: len(ids)]
    )
    names = ("self_attn.out_proj", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")
    paths = [[f"{own}.layers.{i}.{name}" for name in names] for i in range(len(encoder.layers))]
    x, met = encoder.passed(encoder.norm(x, f"{own}.emb_layer_norm"), paths)
    head = "decoder.lm_head"
    x = encoder.norm(gelu(encoder.linear(x, f"{head}.dense")), f"{head}.layer_norm")
    return ids, encoder.linear(x, head).argmax(-1), met
