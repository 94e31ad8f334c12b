"""The numbers of `kq_svd`, by brute force and on results made by hand."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from scipy.linalg import sqrtm
from scipy.optimize import minimize

from sims.montecarlo.draws import Draw
from sims.study.experiment import load_experiment
from sims.study.judging import chosen
from sims.study.results import Results
from tests.experiments.by_hand import is_mean_of, is_ratio_of

EXPERIMENT = load_experiment("kq_svd", "standard")
bounds, effects, problems, simulate = (
    EXPERIMENT.module(name) for name in ("bounds", "effects", "problems", "simulate")
)
BATCHES = 16


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def results_of(estimates, predictions, coordinates):
    return Results("kq_svd", "standard", estimates, predictions, {}, coordinates, {}, {})


def best_product(keys, queries, rank):
    """``ABᵀ`` whose scores are the best of a rank: those of the score matrix's singular vectors."""
    left = np.linalg.svd(keys @ queries.T)[0][:, :rank]
    return np.linalg.pinv(keys) @ left @ left.T @ keys


def keys_product(keys, rank):
    """``ABᵀ`` of the keys' own singular vectors."""
    frame = np.linalg.svd(keys)[2][:rank]
    return frame.T @ frame


def test_both_methods_are_calibrated_on_a_sample_and_judged_on_new_tokens(monkeypatch):
    """Mean squares over all pairs; new tokens are a set that has the law's second moments."""
    draws, sizes, rank = 9, (5, 8), 1
    law = problems.Moments(
        np.array([[2.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 0.4]]),
        np.array([[0.7, 0.1, -0.2], [0.1, 1.1, 0.3], [-0.2, 0.3, 1.9]]),
    )
    # Rows themselves in place of their triangular factors.
    monkeypatch.setattr(
        simulate, "gaussian_triangle", lambda rng, draws, n, d: rng.standard_normal((draws, n, d))
    )
    draw = Draw.of(3, (), draws).draw(0)
    found = simulate.calibrated(draw, draws, (law, rank, *sizes))

    rng, roots = draw.rng(), [np.real(sqrtm(moment)) for moment in law]
    samples = [
        rng.standard_normal((draws, n, 3)) @ root for n, root in zip(sizes, roots, strict=True)
    ]
    new = [3**0.5 * root for root in roots]

    def missed(matrix, keys, queries):
        return np.mean([(k @ matrix @ q - k @ q) ** 2 for k, q in product(keys, queries)])

    ideal = best_product(*roots, rank)
    risks, losses, rivals = [], [], []
    for keys, queries in zip(*samples, strict=True):
        best = best_product(keys, queries, rank)
        risks.append(missed(best, *new))
        losses.append(missed(best, keys, queries) - missed(ideal, keys, queries))
        rivals.append(missed(keys_product(keys, rank), *new))
    worse = np.mean([own > other for own, other in zip(risks, rivals, strict=True)])
    assert 0 < worse < 1  # and not a half, of an odd number
    expected = {
        "risk": np.mean(risks),
        "loss": np.mean(losses) + missed(ideal, *new),
        "rival": np.mean(rivals),
        "worse": worse,
    }
    assert found == {name: pytest.approx(value) for name, value in expected.items()}


def test_a_random_head_is_tried_on_keys_and_queries_that_it_was_not_calibrated_on():
    """Errors of scores, each query's shift apart, and of outputs, query by query."""
    own = {
        "d": 6,
        "width": 4,
        "length": 12,
        "ranks": [1, 2],
        "decay": [0.0, 1.0],
        "log_sharpness": [-1.0, 1.0],
    }
    found = simulate.head(np.random.default_rng(5), (own, 2.0))

    rng = np.random.default_rng(5)
    rank, spread = int(rng.choice([1, 2])), np.arange(1.0, 7) ** -rng.uniform(0, 1)
    maps, directions = rng.standard_normal((3, 6, 4)) / 6**0.5, rng.standard_normal(4)
    offset = 2.0 * directions * ((spread**2).sum() / 6) ** 0.5
    sharpness = np.exp(rng.uniform(-1, 1))
    (keys, queries, _), (new_keys, new_queries, values) = (
        (x @ maps[0] + offset, sharpness * y @ maps[1], x @ maps[2])
        for x, y in (rng.standard_normal((2, 12, 6)) * spread for _ in range(2))
    )
    centre = keys.mean(0)
    changed = {
        "kq": (new_keys, best_product(keys, queries, rank)),
        "k": (new_keys, keys_product(keys, rank)),
        "centred": (new_keys - centre, best_product(keys - centre, queries, rank)),
    }

    def attended(scores):
        weights = np.exp(scores) / np.exp(scores).sum()
        return weights @ values

    for method, (of_keys, matrix) in changed.items():
        score = output = scores_size = outputs_size = 0.0
        for query in new_queries:
            whole, own_scores = new_keys @ query / 2, of_keys @ matrix @ query / 2
            score += 12 * np.var(own_scores - whole)
            scores_size += 12 * np.var(whole)
            output += ((attended(own_scores) - attended(whole)) ** 2).sum()
            outputs_size += (attended(whole) ** 2).sum()
        assert found[f"score_{method}"] == pytest.approx(score / scores_size), method
        assert found[f"output_{method}"] == pytest.approx(output / outputs_size), method


@pytest.mark.parametrize(("seed", "length"), [(0, 3), (2, 4), (3, 4), (0, 8)])
def test_what_a_causal_mask_leaves_to_be_removed_is_a_share_of_the_error_on_it(seed, length):
    """Of rank 1 in two dimensions: all directions of both maps, with the best size of each pair."""
    own = {"d": 2, "rank": 1, "entries": 2, "steps": 100}
    found = bounds.masked_gain(np.random.default_rng(seed), (own, length))["removed"]

    keys, queries = np.random.default_rng(seed).integers(-2, 3, (2, length, 2)).astype(float)
    scores = np.array([[q @ k for k in keys] for q in queries])
    u, s, vt = np.linalg.svd(scores)
    pairs = [(i, j) for i in range(length) for j in range(i + 1)]
    before = sum((scores[i, j] - s[0] * u[i, 0] * vt[0, j]) ** 2 for i, j in pairs)
    later, earlier = np.transpose(pairs)
    goal = scores[later, earlier]

    def left(angles):
        stored, asked = ((np.cos(a), np.sin(a)) for a in angles)
        shape = (queries @ asked)[later] * (keys @ stored)[earlier]
        return (goal**2).sum() - (shape @ goal) ** 2 / max((shape**2).sum(), 1e-12)

    grid = np.linspace(0, np.pi, 25)[:-1]
    starts = sorted(product(grid, grid), key=left)[:5]
    after = min(minimize(left, start, tol=1e-14).fun for start in starts)
    assert found == pytest.approx(1 - after / before, abs=1e-6)


def test_effective_keys_rise_by_a_methods_own_error(rng):
    """And a cache's errors are held to the optimum and to the gap, all of them different."""
    shape, axes = (BATCHES, 3, 2), ("batch", "method", "rank")
    errors, gains = rng.uniform(0.3, 0.6, shape), rng.uniform(0.05, 0.1, shape)
    solved, ranks = rng.uniform(0.1, 0.5, (BATCHES, 2)), {"rank": [1, 4]}
    law = {"optimum": [0.30, 0.12], "keys_only": [0.41, 0.23], "gap": [0.07, 0.05]}
    gain = {"optimum_gain": [0.075, 0.030], "keys_only_gain": [0.1025, 0.0575]}
    theory = xr.Dataset({k: ("rank", v) for k, v in (law | gain).items()}, ranks)
    estimates = {
        "c": xr.Dataset({"error": (axes, errors), "solver": (("batch", "rank"), solved)}, ranks),
        "keys used c": xr.Dataset({"gain": (axes, gains)}, ranks),
    }
    at = {"c": {"part": "cache", "angle": "60"}, "keys used c": {"part": "keys used"}}
    found = effects.caches(results_of(estimates, dict.fromkeys(estimates, theory), at))
    for place in range(2):
        best, rival, other = errors[:, :, place].T
        least, keys_only, gap = (law[name][place] for name in law)
        np.testing.assert_allclose(found["optimum"][place].values, best - least)
        np.testing.assert_allclose(found["gap"][place].values, rival - best - gap)
        assert found["gap where turned"][place].value == pytest.approx(keys_only / least - 1)
        ratios = solved[:, place] / least
        np.testing.assert_allclose(found["solver below"][place].values, np.maximum(1 - ratios, 0))
        np.testing.assert_allclose(found["solver above"][place].values, np.maximum(ratios - 1, 0))
        # Variances of the scores are a quarter: the gain is a quarter of the error.
        shares = {"KQ-SVD": least, "K-SVD": keys_only, "Eigen": other.mean()}
        for method, (name, share) in enumerate(shares.items()):
            effect = found[f"effective keys, {name}"][place]
            is_mean_of(effect, gains[:, method, place] / (share / 4) - 1)
            assert effect.at["share"] == pytest.approx(share)


def test_calibration_is_held_to_its_law_where_both_samples_are_large(rng):
    """Effects of every point that is drawn; rows take the points that they say."""
    units = {
        name: unit
        for name, unit in simulate.units(EXPERIMENT).items()
        if unit.coordinates["part"] == "calibration"
    }
    at = {name: unit.coordinates for name, unit in units.items()}
    # Of keys and queries.
    sizes = {name: unit.sampler.constants[2:] for name, unit in units.items()}
    estimates, predictions = {}, {}
    for name in sizes:
        values = {
            k: rng.uniform(v, v + 0.1, BATCHES)
            for k, v in {"risk": 1.6, "loss": 0.6, "rival": 1.9, "worse": 0.1}.items()
        }
        estimates[name] = xr.Dataset({k: ("batch", v) for k, v in values.items()})
        law = {"least": 1.1, "excess": 0.3, "keys_gap": 0.8, "neighbour": 1.7}
        predictions[name] = xr.Dataset({k: rng.uniform(v, v + 0.1) for k, v in law.items()})
    found = effects.calibration(results_of(estimates, predictions, at))

    isotropic = [name for name in sizes if at[name]["angle"] == "isotropic"]
    neighbours = dict(zip(isotropic, found["ratio to K-SVD"], strict=True))
    for place, name in enumerate(sizes):
        risk, loss, rival, worse = (estimates[name][k].values for k in estimates[name])
        least, excess, gap, neighbour = (float(predictions[name][k]) for k in predictions[name])
        is_mean_of(found["excess"][place], (risk - least) / excess - 1)
        is_mean_of(found["test less calibration"][place], (risk - loss) / (2 * excess) - 1)
        is_mean_of(found["worse than K-SVD"][place], worse)
        gained = found["gain on K-SVD"][place]
        is_ratio_of(gained, risk, rival, 1.0, -1.0)
        assert gained.at["gap_over_excess"] == pytest.approx(gap / excess)
        if name in neighbours:
            own = (risk - least) / neighbour
            is_ratio_of(neighbours[name], own, rival - least, 1.0)
    for angle in ("30", "random", "isotropic"):
        line = found[f"excess by n, {angle}"]
        names = [
            name
            for name in sizes
            if sizes[name][0] == sizes[name][1] and at[name]["angle"] == angle
        ]
        assert [effect.label for effect in line] == names
        assert [effect.x for effect in line] == [sizes[name][0] for name in names]

    claims = {claim.regime: claim for claim in EXPERIMENT.claims if claim.id == "kq-calibration"}
    for regime, least, of in (
        ("excess risk", 800, sizes),
        ("test less calibration", 800, sizes),
        ("against K-SVD, isotropic queries", 400, isotropic),
    ):
        taken = chosen(found[claims[regime].effects], claims[regime])
        large = [name for name in of if min(sizes[name]) >= least]
        assert [effect.label for effect in taken] == large


def test_heads_are_compared_by_logarithms_of_their_errors(rng):
    """What is better has the smaller error: log K-SVD's over KQ-SVD's, and plain over centred."""
    names = ("score_kq", "output_kq", "score_k", "output_k", "score_centred", "output_centred")
    estimates, at = {}, {}
    for mean in (0.0, 3.0):
        name = f"mean {mean}"
        sizes = dict(zip(names, (0.40, 0.20, 0.45, 0.30, 0.25, 0.15), strict=True))
        estimates[name] = xr.Dataset(
            {
                k: (("batch", "replicate"), rng.uniform(0.6 * v, 1.4 * v, (BATCHES, 5)))
                for k, v in sizes.items()
            }
        )
        at[name] = {"part": "head", "mean": mean}
    found = effects.heads(results_of(estimates, {}, at))
    for place, (name, data) in enumerate(estimates.items()):
        own = {k: data[k].values for k in names}
        logs = {k: np.log(v).mean(1) for k, v in own.items()}
        better, centring = found["outputs better"][place], found["gain of centring"][place]
        is_mean_of(better, logs["output_k"] - logs["output_kq"])
        is_mean_of(centring, logs["score_kq"] - logs["score_centred"])
        assert better.value > 0 < centring.value
        assert centring.at["mean"] == at[name]["mean"]
        other = [
            np.mean(
                [
                    (own["score_kq"][b, i] < own["score_k"][b, i])
                    != (own["output_kq"][b, i] < own["output_k"][b, i])
                    for i in range(5)
                ]
            )
            for b in range(BATCHES)
        ]
        assert 0 < np.mean(other) < 1
        is_mean_of(found["outputs disagree"][place], other)


def test_two_keys_attain_the_bound_by_tanh():
    own = {"row_length": 4, "d": 2, "rows": 3}
    for seed in range(5):
        found = bounds.row_bounds(np.random.default_rng(seed), own)
        assert found["attained"] == pytest.approx(1, abs=1e-12)


class Given:
    """A generator that gives what it is told: arrays for normals, 0 for uniforms."""

    def __init__(self, *integers, normals):
        self.left, self.arrays = list(integers), list(normals)

    def integers(self, *_):
        return self.left.pop(0)

    def standard_normal(self, shape):
        values = np.array(self.arrays.pop(0), float)
        assert values.shape == shape
        return values

    def uniform(self, low, high, size=()):
        return np.zeros(size)


def test_a_row_of_two_keys_against_every_bound():
    """Equal scores moved by ±δ: weights change by ± tanh(δ)/2, values lie 5 apart.

    Values diag(3, 4) have the spectral norm 4, and softmax is Lipschitz with ½.
    """
    delta, half = 0.4, np.tanh(0.4) / 2
    given = Given(2, normals=[[[0, 0]], [[delta, -delta]], [[3, 0], [0, 4]]])
    found = bounds.row_bounds(given, {"row_length": 4, "d": 2, "rows": 1})
    assert found["euclidean"] == pytest.approx(2 * half / delta)
    assert found["tanh"] == pytest.approx(half * 5 / (np.tanh(delta / 2) * 5))
    assert found["frobenius"] == pytest.approx(2 * half * 5 / (2**0.5 * delta * 4))


def test_a_random_heads_bound_is_of_spectral_norms():
    """Scores diag(4, 2, 1)/√3 of rank one keep the 4: what is lost has the norm 2/√3."""
    keys, values = np.diag([4.0, 2.0, 1.0]), np.diag([1.0, 2.0, 3.0])
    given = Given(1, normals=[[keys, np.eye(3), values]])
    found = bounds.random_bounds(given, {"random_length": 3, "d": 3})
    weights = [np.exp(np.diag(kept) / 3**0.5) for kept in ([4.0, 0, 0], [4.0, 2.0, 1.0])]
    moved, own = (each / each.sum(1, keepdims=True) for each in weights)
    error = np.linalg.svd((moved - own) @ values)[1][0]
    assert found["ratio"] == pytest.approx(error / (2 / 3**0.5 * 3))


def test_new_tokens_cost_twice_the_excess(rng):
    """Of a risk above the optimum and a loss below it by the excess each, half the gap is one."""
    point, at = "calibration", {"part": "calibration", "n": 800, "ratio": 1.0, "angle": "random"}
    least, excess = 0.7, 0.02
    gaps = excess * (1 + 0.1 * rng.standard_normal((2, BATCHES)))
    data = {"risk": least + gaps[0], "loss": least - gaps[1], "rival": least + 3 * gaps[0]}
    data["worse"] = np.full(BATCHES, 0.1)
    theory = {"least": least, "excess": excess, "keys_gap": 0.1, "neighbour": 0.5}
    estimates = xr.Dataset({name: ("batch", values) for name, values in data.items()})
    made = results_of(
        {point: estimates.assign_attrs(replicates=99)}, {point: xr.Dataset(theory)}, {point: at}
    )
    families = effects.calibration(made)
    is_mean_of(families["excess"][0], gaps[0] / excess - 1)
    is_mean_of(families["test less calibration"][0], gaps.sum(0) / (2 * excess) - 1)
