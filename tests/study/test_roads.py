"""Theory as the experiment file asks for it."""

import numpy as np
import pytest

from sims.study.roads import predict_terms
from sims.study.schema import TheorySpec
from sims.study.specification import ProblemSpec
from sims.theory import predict

FRAMES = {"kind": "haar", "seed": 1}


def problem(**more):
    return ProblemSpec(
        dimension=2,
        design={"kind": "isotropic"},
        target={"kind": "rbf", "lengthscale": 2.0, "features": 4, "seed": 1},
        noise_sd=0.5,
        heads={
            "count": 2,
            "width": 1,
            "kernel": "gaussian",
            "bandwidth": 0.8,
            "frames": FRAMES,
            **more,
        },
        n=16,
        queries={"kind": "gaussian", "count": 2, "scale": 0.5, "seed": 1},
    ).build()


@pytest.mark.parametrize("order", ["first", "exact"])
def test_every_variable_begins_with_the_order(order):
    """However many orders there are, and whatever else a variable runs along."""
    terms = predict_terms(problem(), TheorySpec(order=order))
    assert terms["bias"].dims[1:] == predict(*problem())["bias"].dims
    assert {values.dims[0] for values in terms.data_vars.values()} == {"order"}


def test_key_frames_are_drawn_apart_from_frames_of_the_same_seed():
    """W_Q and W_K: of one kind and one seed in a file, yet other draws."""
    heads = problem(key_frames=FRAMES).heads
    np.testing.assert_array_equal(heads.frames, problem().heads.frames)
    overlap = np.einsum("hdk,hdk->", heads.frames, heads.key_frames)
    assert abs(overlap) < 1.9  # of 2 where they are one
