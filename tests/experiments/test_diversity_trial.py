"""The search for the worst pair of all configurations: its tables, its pairs, its error."""

import numpy as np
import pytest
import xarray as xr

from experiments.diversity.predict import averaged
from experiments.diversity.regimes import regimes
from experiments.diversity.trial import Family, _worst, scattered, two_heads, worst_pairs
from sims.judgement.tests import Rule, decide
from sims.study.experiment import load_experiment

ANGLES = np.linspace(0.0, np.pi / 2, 17)
SEARCH = {"configurations": 8000, "levels": 40, "rounds": 30, "step": 0.005, "seed": 3}
PAIRS = np.triu_indices(4, 1)


def synthetic(*shares: float) -> Family:
    """One set a share p: biases p that heads share, and (1 − p) c², half of it noise."""
    ones, squares = (np.ones((len(ANGLES), 2, 2)) for _ in range(2))
    squares[:, 0, 1] = squares[:, 1, 0] = np.cos(ANGLES) ** 2
    half = np.stack([(1 - p) / 2 * squares for p in shares])
    dims = ("set", "configuration", "head", "head2")
    parts = {"bias": np.stack([p * ones for p in shares]), "signal": half, "noise": half}
    data = {f"{name}_matrix": (dims, 3 * part) for name, part in parts.items()}
    return Family(ANGLES, xr.Dataset(data), 4)


def found(family: Family, *key: str) -> xr.Dataset:
    return worst_pairs(family, [key], **SEARCH).isel(searched=0)


@pytest.mark.parametrize("name", ["exchangeable, gaussian", "pure noise, softmax"])
def test_table_gives_theory_of_a_configuration_between_its_knots(name: str) -> None:
    experiment = load_experiment("diversity", "smoke")
    regime = regimes(experiment)[name]
    sets, draws = 8, 1024
    family = Family(ANGLES, averaged(two_heads(regime, ANGLES), sets, draws, 5), 4)
    # "a chain" and "irregular" of the list; each has one angle a pair.
    for label in ("a chain", "irregular"):
        at = regime.labels.index(label)
        one = regime._replace(
            labels=(label,), frames=regime.frames[at][None], covariance=regime.covariance[at][None]
        )
        parts = averaged(one, sets, draws, 6)
        m = sum(parts[f"{k}_matrix"].values[:, 0] for k in ("bias", "signal", "noise"))
        own = m.mean((1, 2)) / np.trace(m, axis1=1, axis2=2) * 4
        gram = np.array(experiment.settings["configurations"][at]["gram"])
        vectors = np.linalg.cholesky(gram)
        known = np.array([family.error(vectors, column) for column in range(1, sets + 1)])
        error = np.hypot(own.std(ddof=1), known.std(ddof=1)) / np.sqrt(sets)
        assert abs(own.mean() - known.mean()) < 4 * error
        assert error < 0.004


def test_matrices_are_functions_of_the_angle_and_set() -> None:
    family = synthetic(0.2, 0.6)
    vectors = scattered(50, 4, np.random.default_rng(0))
    squares = (vectors @ vectors.mT) ** 2
    np.testing.assert_allclose(family.matrix(vectors, "geometric"), squares, atol=1e-12)
    for column, p in enumerate((0.4, 0.2, 0.6)):
        matrix = p + (1 - p) * squares
        np.testing.assert_allclose(family.matrix(vectors, "errors", column), matrix, atol=2e-5)
        np.testing.assert_allclose(family.error(vectors, column), matrix.mean((1, 2)), atol=2e-5)
        np.testing.assert_allclose(family.matrix(vectors, "noise", column), squares, atol=2e-5)
        top = (4 - np.linalg.eigvalsh(squares)[:, -1]) / 3
        np.testing.assert_allclose(family.index(vectors, ("top", "total"), column), top, atol=2e-5)


def test_worst_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(2)
    index, error = rng.uniform(size=60), rng.uniform(0.5, 1.0, 60)
    for least in (0.0, 0.1, 0.5):
        every = [
            (error[b] / error[a], a, b)
            for a in range(60) for b in range(60) if index[b] - index[a] >= least
        ]  # fmt: skip
        assert _worst(index, error, least) == max(every)[1:]


def test_configurations_come_near_common_directions() -> None:
    vectors = scattered(4000, 4, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1.0)
    cosines = np.abs(vectors @ vectors.mT)[:, *PAIRS]
    # All heads aligned, three and one, two and two, one pair, all orthogonal.
    shares = {(1,) * 6: 0.1, (0, 0, 0, 1, 1, 1): 0.03, (0, 0, 0, 0, 1, 1): 0.02}
    shares |= {(0, 0, 0, 0, 0, 1): 0.02, (0,) * 6: 0.001}
    for pattern, share in shares.items():
        assert (np.abs(np.sort(cosines) - pattern).max(1) < 0.15).mean() > share


def test_index_of_which_the_error_is_a_function_has_no_rise() -> None:
    # M is linear in c², and so is the index: error = 1 − ¾ (1 − p) × index.
    assert abs(float(found(synthetic(0.3), "mean", "geometric").worst_rise.max())) < 1e-4


@pytest.mark.parametrize("p", [0.0, 0.5, 0.7])
def test_top_leaves_unsaid_at_least_what_three_and_one_does(p: float) -> None:
    # The closed form of docs/theory.md, for three and one against four heads equally correlated.
    unsaid = (4 + 2 * np.sqrt(1 + 3 * p**2)) / (5 + 3 * p) - 1
    pair = found(synthetic(p), "top", "errors")
    assert float(pair.worst_rise.mean()) > unsaid - 1e-3


def test_top_of_a_gram_matrix_rises_by_a_third_at_worst() -> None:
    # One pair of aligned heads, or two: the top eigenvalue is 2, but entries sum to 6 or to 8.
    pair = found(synthetic(0.0), "top", "errors")
    assert float(pair.worst_rise.mean()) == pytest.approx(8 / 6 - 1, abs=1e-3)
    less, more = np.sort(pair.worst_cosines.values[:, *PAIRS])
    np.testing.assert_allclose(less, [0, 0, 0, 0, 0, 1], atol=0.15)
    np.testing.assert_allclose(more, [0, 0, 0, 0, 1, 1], atol=0.15)


def test_rise_by_a_set_is_that_of_a_search_by_this_set_alone() -> None:
    shares = (0.30, 0.31, 0.32)
    together = found(synthetic(*shares), "participation", "errors").worst_rise.values
    alone = [float(found(synthetic(p), "participation", "errors").worst_rise[0]) for p in shares]
    assert np.ptp(alone) > 5e-4
    np.testing.assert_allclose(together, alone, atol=5e-5)


@pytest.mark.parametrize(
    ("worst", "unsure", "expected"),
    [(0.004, 0.0002, "supported"), (0.004, 0.0004, "inconclusive"), (0.006, 0.0002, "refuted")],
)
def test_four_standard_errors_of_the_sets_are_the_bound(
    worst: float, unsure: float, expected: str
) -> None:
    experiment = load_experiment("diversity")
    name, index = "exchangeable, softmax", "mean, total"
    family = f"{name}, {index}, any configurations"
    # The standard error of two sets that are 2 u apart is u.
    rises = {"worst_rise": (("searched", "set"), [[worst - unsure, worst + unsure]])}
    theory = xr.Dataset({"worst_index": ("searched", [index])} | rises)
    effects = experiment.module("effects").at_worst(name, theory)
    (claim,) = (claim for claim in experiment.claims if claim.effects == family)
    assert decide(effects[family], Rule.of(claim, None)).verdict == expected
    assert experiment.module("effects").at_worst(name, xr.Dataset()) == {}
