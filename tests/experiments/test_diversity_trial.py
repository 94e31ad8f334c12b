"""The search for the worst pair of all configurations: its tables, its pairs, its error."""

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq

from experiments.diversity.predict import averaged
from experiments.diversity.quantities import CONTINUOUS, EVERY, over_equiangular
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
            for a in range(60)
            for b in range(60)
            if index[b] - index[a] >= least
        ]
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


def list_of(family: Family, vectors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices of errors and noise by set, as theory gives them of a list of configurations."""
    at = np.stack(list(vectors.values()))
    errors, noise = (
        np.stack([family.matrix(at, version, 1 + k) for k in range(family.sets)])
        for version in ("errors", "noise")
    )
    return {"error_matrix": errors, "bias_matrix": 0 * errors, "noise_matrix": noise}


def equiangular(cosine: float) -> np.ndarray:
    values, vectors = np.linalg.eigh((1 - cosine) * np.eye(4) + cosine)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


COSINES = (1.0, 0.9, 0.84, 0.7637, 0.745, 0.735, 0.708, 0.65, 0.5, 0.25, 0.0)
LIST = {f"equiangular {c}": equiangular(c) for c in COSINES} | {
    "three and one": np.eye(4)[[0, 0, 0, 1]],
    "two and two": np.eye(4)[[0, 0, 1, 1]],
}


def are_equiangular(vectors: dict[str, np.ndarray]) -> np.ndarray:
    return np.array([label.startswith("equiangular") for label in vectors])


def squared(vectors: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([(own @ own.T) ** 2 for own in vectors.values()])


EVEN, GRAM = are_equiangular(LIST), squared(LIST)


def test_error_over_that_of_equiangular_heads_by_bisection() -> None:
    # M = p + (1 − p) c²: the cosine of equiangular heads with the same index, then their error.
    family, key = synthetic(0.3, 0.5), ("participation", "errors")
    means = list_of(family, LIST)
    gaps = over_equiangular(key, GRAM, EVEN)(means)
    for k, p in enumerate((0.3, 0.5)):
        for u, name in enumerate(("three and one", "two and two")):
            matrix = p + (1 - p) * (LIST[name] @ LIST[name].T) ** 2
            squares = np.sum(matrix**2)  # participation is a function of it

            def lack(c: float, p: float = p, squares: float = squares) -> float:
                return 4 + 12 * (p + (1 - p) * c**2) ** 2 - squares

            equal = p + (1 - p) * brentq(lack, 0.0, 1.0) ** 2
            expected = matrix.mean() / ((4 + 12 * equal) / 16) - 1
            assert gaps[k, u] == pytest.approx(expected, abs=1e-4)
            assert abs(expected) > 0.01


def test_spline_through_the_listed_heads_is_as_exact_as_is_said() -> None:
    """Equiangular heads between the listed ones, of every index and regime, by theory's tables."""
    experiment = load_experiment("diversity", "smoke")
    labels = [own["label"] for own in experiment.settings["configurations"]]
    listed = [float(label.split()[1]) for label in labels if label.startswith("equiangular")]
    assert sorted(listed) == sorted(COSINES)
    between = {str(c): equiangular(c) for c in np.linspace(0.3, 0.92, 32)}
    every = {f"equiangular {c}": equiangular(c) for c in COSINES} | between
    even, gram = are_equiangular(every), squared(every)
    bound = experiment.module("effects").INTERPOLATION
    for name, regime in regimes(experiment).items():
        if experiment.settings["regimes"][name].get("any_configuration"):
            parts = averaged(two_heads(regime, ANGLES), 2, 4096, 5)
            means = list_of(Family(ANGLES, parts, 4), every)
            for key in EVERY:
                if key[0] in CONTINUOUS and key[1] != "signal":
                    assert np.abs(over_equiangular(key, gram, even)(means)).max() < bound, key
            if regime.lengthscale:  # signals in the place of noise, with the same errors
                swapped = {"noise_matrix": parts.signal_matrix, "signal_matrix": parts.noise_matrix}
                means = list_of(Family(ANGLES, parts.assign(swapped), 4), every)
                for key in [(definition, "noise") for definition in CONTINUOUS]:
                    assert np.abs(over_equiangular(key, gram, even)(means)).max() < bound, key


def test_the_splines_error_is_part_of_the_effect() -> None:
    effects = load_experiment("diversity").module("effects")
    means = list_of(synthetic(0.3, 0.5, 0.4), LIST)
    key = ("mean", "noise")
    made = effects.at_equal_diversity("made", [key], list(LIST), means, GRAM)[key]
    assert [effect.label for effect in made] == ["made, three and one", "made, two and two"]
    assert {effect.bound for effect in made} == {effects.INTERPOLATION}
    assert {effect.points for effect in made} == {("made",)}


@pytest.mark.parametrize(
    ("above", "unsure", "expected"),
    [(0.0035, 0.0002, "supported"), (0.0035, 0.0003, "inconclusive"), (0.0065, 0.0002, "refuted")],
)
def test_worst_pair_is_held_against_the_listed_ones(
    above: float, unsure: float, expected: str
) -> None:
    # The standard error of two sets that are 2 u apart is u; four of them, and the splines' error,
    # are the bound.
    experiment, family = load_experiment("diversity"), synthetic(0.5, 0.5)
    effects = experiment.module("effects")
    law = list_of(family, LIST)
    key = ("participation", "errors")
    gap = over_equiangular(key, GRAM, EVEN)(law)[0].min()  # uneven heads are better
    rise = 1 / (1 + gap) - 1
    sets = [[rise + above - unsure, rise + above + unsure], [9.0, 9.0]]
    theory = xr.Dataset(
        {
            "worst_index": ("searched", [", ".join(key), "mean, geometric"]),
            "worst_rise": (("searched", "set"), sets),
        }
    )
    name = "exchangeable, softmax"
    (effect,) = effects.worse_pairs(name, theory, list(LIST), law, GRAM)
    (claim,) = (c for c in experiment.claims if c.effects == f"{name}, no worse pair")
    assert decide([effect], Rule.of(claim, None)).verdict == expected
