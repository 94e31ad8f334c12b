"""Trained weights of two packages: forward passes and a report."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from experiments.trained_models import problems
from experiments.trained_models.checkpoints import tensors
from sims.base.errors import InputError
from sims.inspect import inspect
from sims.study.referenced_files import checkpoint
from sims.study.running import Run

LAW = Run.load("trained_models").spec.law
REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
ANTIBODY = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYC"
    "AKDRLSITIRPRYYGLDVWGQGTLVTVSS"
)


def trained(name):
    try:
        return problems.read_model(LAW, name)
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def albert(tmp_path_factory):
    model, folder = trained("reactions"), tmp_path_factory.mktemp("albert")
    source = checkpoint(LAW["checkpoints"]["reactions"]["file"])
    save_file(tensors(source), folder / "model.safetensors")
    shutil.copy(source.with_name("config.json"), folder)
    return folder, model


def test_every_token_of_a_reaction_is_recovered(albert):
    ids = albert[1].numbers(REACTION)
    *met, last = albert[1].passed(ids)
    assert np.shape(met) == (12, 56, 256)
    scores = albert[1].scores(last)
    np.testing.assert_array_equal(scores.argmax(1)[1:-1], ids[1:-1])


def test_most_tokens_of_an_antibody_are_recovered():
    model = trained("heavy chains")
    ids = model.numbers(ANTIBODY)
    *met, last = model.passed(ids)
    assert np.shape(met)[::2] == (4, 128)
    assert (model.scores(last).argmax(1) == ids)[1:-1].mean() > 0.9


def test_a_report_of_trained_heads(albert):
    """Twelve passes of one layer differ in use and not in weights; numbers seen once by hand."""
    folder, model = albert
    texts = [REACTION.replace("F", halogen) for halogen in ("F", "I", "O", "N")]
    texts += [text.replace("CC(C)S", "CCCCS") for text in texts]
    met = [np.array(model.passed(model.numbers(text))[:-1]) for text in texts]
    shortest = min(each.shape[1] for each in met)
    passes = np.stack([each[:, :shortest] for each in met], axis=1)
    data = inspect(folder, activations={str(number): x for number, x in enumerate(passes)})
    assert data.sizes["layer"] == 12
    assert data.overlap_excess.values == pytest.approx(0.1004, abs=1e-4)
    assert (data.kq_svd_rank <= data.k_svd_rank).all()
    assert (data.merge_error < data.prune_error).all()
    assert ((data.typical_effective_keys > 1) & (data.typical_effective_keys < shortest)).all()
    noise = data.noise_index_mean.values
    assert noise[0] > noise[-1]
