"""Trained weights of two packages: forward passes, reports, and every layout of real tensors."""

import shutil

import numpy as np
import pytest
import xarray as xr
from safetensors.numpy import load_file

from sims.inspect import inspect
from tests.inspect import models
from tests.inspect.real import ANTIBODY, REACTION, RXN, Encoder, antibody, converted, reaction


@pytest.fixture(scope="session")
def albert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("albert")
    source = converted(f"{RXN}/pytorch_model.bin", folder)
    shutil.copy(source / "config.json", folder)
    lines = (source / "vocab.txt").read_text().split()
    return folder, {token: number for number, token in enumerate(lines)}


@pytest.fixture(scope="session")
def roberta(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roberta")
    converted("sapiens/models/v1/checkpoint_vh.pt", folder)
    return folder


def test_every_token_of_a_reaction_is_recovered(albert):
    ids, recovered, met = reaction(Encoder(albert[0]), albert[1], REACTION)
    assert met.shape == (12, 56, 256)
    np.testing.assert_array_equal(recovered[1:-1], ids[1:-1])


def test_most_tokens_of_an_antibody_are_recovered(roberta):
    ids, recovered, met = antibody(Encoder(roberta, 8), ANTIBODY)
    assert met.shape[::2] == (4, 128)
    assert (recovered == ids)[1:-1].mean() > 0.9


def test_a_report_of_trained_heads(albert):
    """Twelve passes of one layer differ in use and not in weights; numbers seen once by hand."""
    folder, vocabulary = albert
    encoder = Encoder(folder)
    texts = [REACTION.replace("F", halogen) for halogen in ("F", "I", "O", "N")]
    texts += [text.replace("CC(C)S", "CCCCS") for text in texts]
    shortest = min(len(reaction(encoder, vocabulary, text)[0]) for text in texts)
    met = [reaction(encoder, vocabulary, text)[2][:, :shortest] for text in texts]
    passes = {str(number): np.array(x) for number, x in enumerate(zip(*met, strict=True))}
    data = inspect(folder, activations=passes)
    assert data.sizes["layer"] == 12
    assert data.overlap_excess.values == pytest.approx(0.1004, abs=1e-4)
    assert (data.kq_svd_rank <= data.k_svd_rank).all()
    assert (data.merge_error < data.prune_error).all()
    assert ((data.typical_effective_keys > 1) & (data.typical_effective_keys < shortest)).all()
    noise = data.noise_index_mean.values
    assert noise[0] > noise[-1]


def test_every_layout_of_trained_tensors_gives_one_report(albert, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "D", 256)
    monkeypatch.setattr(models, "WIDTH", 32)
    own = load_file(albert[0] / "model.safetensors")
    module = f"{models.ALBERT}.attention"
    parts = [
        np.column_stack([own[f"{module}.{n}.weight"], own[f"{module}.{n}.bias"]]).reshape(
            8, 32, 257
        )
        for n in models.QKV
    ]
    reference = inspect(albert[0]).drop_vars(["module", "passes"]).drop_attrs()
    for name, build in models.LAYOUTS.items():
        tensors = build(*parts, own[f"{module}.dense.weight"])
        folder = models.write(tmp_path / name, tensors, {"num_attention_heads": 8}, np.float32)
        found = inspect(folder).drop_vars(["module", "passes"]).drop_attrs()
        xr.testing.assert_identical(found, reference)
