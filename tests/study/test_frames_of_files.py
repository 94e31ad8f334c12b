"""Frames of queries and of keys, as a file has them."""

import numpy as np

from sims.study.specification import ProblemSpec

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


def test_key_frames_are_drawn_apart_from_frames_of_the_same_seed():
    """W_Q and W_K: of one kind and one seed in a file, yet other draws."""
    heads = problem(key_frames=FRAMES).heads
    np.testing.assert_array_equal(heads.frames, problem().heads.frames)
    overlap = np.einsum("hdk,hdk->", heads.frames, heads.key_frames)
    assert abs(overlap) < 1.9  # of 2 where they are one
