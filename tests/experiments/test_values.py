"""A layer whose heads own values or outputs: by hand in NumPy, and as ``house`` where they share.

By hand everything is computed from the same keys and queries, so that only rounding to float32
differs. The identity of label noise may be off by five standard errors of 64 batches: over twenty
numbers, other seeds would give a false alarm less than once in 10,000 runs.
"""

import numpy as np
import pytest
import xarray as xr
from scipy.special import softmax

from experiments.house import sets
from experiments.house import simulate as house
from experiments.house.frames import draw_rotations
from experiments.house.pilot import ROTATIONS
from experiments.house.study import House
from experiments.values.layer import own_targets, tuned_bandwidths
from experiments.values.points import POINTS
from experiments.values.simulate import Layer, batch
from experiments.values.statistic import falls
from sims.base.estimates import mcse
from sims.montecarlo.draws import Draw
from sims.study.results import Results
from sims.study.running import Run
from tests.by_hand import waves

REPLICATES = 2


@pytest.fixture(scope="module")
def layer():
    """A layer of four heads on 64 Gaussian keys."""
    run = Run.load("house", "smoke")
    content = run.study.declared.content
    few = {"keys": 64, "size": [[8, 4, 4]], "family": "isotropic", "kernel": "gaussian"}
    study = House(content["law"] | few, content["questions"])
    problem = study.opened(run.settings, run.simulation).draw(0)
    assert problem.equal
    targets = own_targets(problem)
    return Layer(problem, targets, tuned_bandwidths(problem, targets))


def draw(number):
    """Draws of a batch."""
    return Draw.from_seed(7, (0,), REPLICATES).draw(number)


def test_heads_that_share_all_are_those_of_house_to_the_last_bit(layer):
    found = batch(draw(0), REPLICATES, layer)
    same = house.batch(draw(0), REPLICATES, layer.problem)
    for end, place in enumerate((sets.ALIGNED, sets.HAAR)):
        for name in ("bias", "variance", "noise"):
            assert (found[name][end, 0] == same[name][sets.EQUAL, place]).all(), name


def weights_by_hand(layer, rng, place):
    """Weights of every end, replicate, head, query and key at a point, and keys and queries."""
    problem = layer.problem
    keys, _ = problem.law.keys(rng, REPLICATES, problem.n)
    rotations = draw_rotations(rng, ROTATIONS[problem.n], problem.law.dimension)[:, 0, 0]
    queries = problem.queries(0)
    groups = np.split(queries, len(rotations))
    weights = np.zeros((2, REPLICATES, problem.heads, len(queries), problem.n))
    for end, chosen in enumerate((sets.ALIGNED, sets.HAAR)):
        for head in range(problem.heads):
            scores = []
            for rotation, group in zip(rotations, groups, strict=True):
                frame = rotation @ problem.key_frames[chosen, head]
                gap = (group @ frame)[None, :, None] - (keys @ frame)[:, None]
                scores.append(-(gap**2).sum(-1) / (2 * layer.bandwidth[0, place, head] ** 2))
            weights[end, :, head] = softmax(np.concatenate(scores, axis=1), axis=-1)
    return weights, keys, queries


@pytest.mark.parametrize("place", range(len(POINTS)))
def test_a_layer_by_hand(layer, place):
    """Every matrix is written out: B_h of unit length and cosine κ, or values that correlate."""
    problem, point = layer.problem, POINTS[place]
    heads, kappa = problem.heads, point.alignment
    weights, keys, queries = weights_by_hand(layer, draw(0).rng(), place)
    writes = np.sqrt(kappa) * np.eye(heads + 1)[:1] + np.sqrt(1 - kappa) * np.eye(heads + 1)[1:]
    values = np.stack([waves(problem.target, keys)] * heads)
    truth = np.stack([waves(problem.target, queries)] * heads)
    if point.arm == "values":
        writes = np.eye(heads + 1)[[0] * heads]
        own = [[waves(target, x) for target in layer.targets] for x in (keys, queries)]
        values = np.sqrt(kappa) * values + np.sqrt(1 - kappa) * np.array(own[0])
        truth = np.sqrt(kappa) * truth + np.sqrt(1 - kappa) * np.array(own[1])
    averages = np.einsum("erhqn,hrn->erhq", weights, values) - truth
    written = np.einsum("erhq,hc->erqc", averages, writes) / heads
    spread = written.var(1, ddof=1).sum(-1)
    bias = (written.mean(1) ** 2).sum(-1) - spread / REPLICATES
    overlap = np.einsum("erhqn,ergqn->erqhg", weights, weights)
    cosines = kappa + (1 - kappa) * np.eye(heads)
    noise = problem.noise_sd**2 * (overlap * cosines).sum((-2, -1)).mean(1) / heads**2
    found = batch(draw(0), REPLICATES, layer)
    scale = (spread + noise).mean()
    for name, by_hand in (("bias", bias), ("variance", spread + noise), ("noise", noise)):
        np.testing.assert_allclose(found[name][:, place, 0], by_hand.mean(-1), atol=1e-4 * scale)


def test_label_noise_that_heads_share_is_overlap_times_alignment(layer):
    rounds = [batch(draw(number), REPLICATES, layer) for number in range(64)]
    gaps = np.array([one["simulated_noise"] - one["noise"] for one in rounds], float)
    assert (abs(gaps.mean(0)) < 5 * mcse(gaps)).all()


def test_heads_whose_outputs_are_apart_gain_nothing_from_diversity(layer):
    """By algebra: heads of both sets are equally good alone."""
    place = POINTS.index(("outputs", 0.0))
    rounds = [batch(draw(number), REPLICATES, layer) for number in range(64)]
    errors = np.array([one["bias"] + one["variance"] for one in rounds], float)[:, :, place]
    gap = errors[:, 1] - errors[:, 0]
    assert (abs(gap.mean(0)) < 5 * mcse(gap)).all()
    heads = np.array([one["head_error"] for one in rounds], float)[:, :, place]
    np.testing.assert_allclose(errors, heads / layer.problem.heads, rtol=1e-4)


def test_falls_are_those_at_which_mean_heads_err_equally():
    """By a line through the batches at every point and temperature."""
    error, head = np.random.default_rng(4).normal(size=(2, 16, 2, len(POINTS), 2))
    error[:, 0] = 1.0
    terms = {"bias": error / 4, "variance": error * 3 / 4, "head_error": head}
    dims = ("batch", "end", "point", "temperature")
    data = xr.Dataset({name: (dims, values) for name, values in terms.items()})
    found = falls(Results({"0000": data}, {}, {})).mean(1)[0]
    apart = head[:, 1] - head[:, 0]
    for cell in np.ndindex(found.shape):
        line = np.polyfit(apart[:, *cell], 1 - error[:, 1, *cell], 1)
        assert found[cell] == pytest.approx(line[1])
