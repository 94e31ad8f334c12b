"""The experiment `angle_units`: pairs and effects by hand, the law by quadrature, verdicts."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims import DESIGNS, Heads, Task, predict
from sims import TARGETS as TARGETS_OF
from sims.estimates import mcse
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import is_mean_of, pseudovalues
from tests.experiments.helpers import results_of

BATCHES = 64
LINES = [0.0, 30.0, 45.0, 60.0, 90.0, 120.0, 135.0, 150.0]
"""Of a point made by hand: the axes at 45° and 135°, pairs at 30° about each, one at 0° and 90°."""
AXES, BETWEEN, MAJOR, MINOR = (2, 6), (0, 4), (1, 3), (5, 7)
SLOPED = {"design": "correlation 0.9", "population": None, "heads.bandwidth": 0.5}
TARGETS = {"design": "isotropic", "population": "targets of one direction", "heads.bandwidth": 0.5}
PRESCRIBED = {"design": "isotropic", "population": "prescribed angles", "heads.bandwidth": 1.1}
CUBE = {"design": "cube", "population": None, "heads.bandwidth": 0.2}


def covariances(seed, heads, batches=BATCHES):
    """Batches (B, H, H) about a covariance matrix, each symmetric."""
    rng = np.random.default_rng(seed)
    root = rng.uniform(0.5, 1.5, (heads, heads))
    noise = 0.02 * rng.normal(size=(batches, heads, heads))
    return root @ root.T / heads + noise + noise.transpose(0, 2, 1)


def effects_of(coordinates, lines, settings, law=None):
    """Effects of one point made by hand, and its covariances of signal and noise."""
    signal, noise = (covariances(seed, len(lines)) for seed in (0, 1))
    data = xr.Dataset(
        {
            "integrated_signal_covariance": (("batch", "head", "head2"), signal),
            "integrated_noise_covariance": (("batch", "head", "head2"), noise),
        },
        attrs={"replicates": 99},
    )
    at = {"heads.kernel": "softmax", **coordinates}
    problem = {"heads": {"frames": {"angles": lines}}}
    results = Results(
        "angle_units",
        "smoke",
        {"p": data},
        {"p": law or xr.Dataset()},
        settings,
        {"p": at},
        {"p": problem},
        {},
    )
    return load_experiment("angle_units").module("effects").effects(results), signal, noise


def columns(whole, *pairs):
    """Covariance and both variances of each pair, batch by batch."""
    return [c for i, j in pairs for c in (whole[:, i, j], whole[:, i, i], whole[:, j, j])]


def rho(covariance, first, second):
    return 2 * covariance / (first + second)


def less(*terms):
    return 1 - rho(*terms)


def over(statistic):
    """The statistic of one pair over that of another, less 1."""
    return lambda *six: statistic(*six[:3]) / statistic(*six[3:]) - 1


def test_pairs_in_sloped_keys_by_hand():
    found, _, noise = effects_of(SLOPED, LINES, {"opened": [30]})
    rivals = {effect.label: effect for effect in found["rival of the axes"]}
    assert len(rivals) == 8 * 7 // 2 - 1
    is_mean_of(
        rivals["p: heads (1, 5) against (2, 6)"],
        pseudovalues(over(less), *columns(noise, (1, 5), AXES)),
    )
    for family, statistic in (("correlation", rho), ("decorrelation", less)):
        narrow, right = found[f"{family} at one principal angle"]
        is_mean_of(narrow, pseudovalues(over(statistic), *columns(noise, MAJOR, MINOR)))
        is_mean_of(right, pseudovalues(over(statistic), *columns(noise, BETWEEN, AXES)))
        assert (narrow.at["angle"], right.at["angle"]) == (30, 90)
        assert narrow.at["unit"] == "common"
    (canonical,) = found["correlation at one canonical correlation"]
    is_mean_of(canonical, pseudovalues(over(rho), *columns(noise, AXES, MINOR)))

    def rises(pair, start):
        return pseudovalues(
            lambda *six: rho(*six[:3]) - rho(*six[3:]), *columns(noise, pair, start)
        )

    major, minor = found["rise from the orthogonal pair"]
    is_mean_of(major, rises(MAJOR, BETWEEN))
    is_mean_of(minor, rises(MINOR, BETWEEN))
    assert (major.at["pair"], minor.at["pair"]) == ("other", "Σ-orthogonal")
    first, second = found["rise from the Σ-orthogonal pair"]
    is_mean_of(first, rises(MAJOR, MINOR))
    is_mean_of(second, rises(BETWEEN, MINOR))


def test_bandwidths_one_a_head_are_known_as_own_units():
    found, *_ = effects_of({**SLOPED, "heads.bandwidth": "0.5 s"}, LINES, {"opened": [30]})
    assert {effect.at["unit"] for effect in found["rival of the axes"]} == {"own"}


def test_keys_on_a_cube_by_hand():
    found, _, noise = effects_of(CUBE, [0.0, 45.0, 90.0, 135.0], {})
    (effect,) = found["decorrelation at one principal angle"]
    is_mean_of(effect, pseudovalues(over(less), *columns(noise, (0, 2), (1, 3))))
    assert (effect.at["keys"], effect.at["bandwidth"]) == ("cube", 0.2)


def test_targets_of_one_direction_by_hand():
    """Signal and noise add up before they are divided."""
    sided = {"sided": [{"angle": 45, "first": [1, 3], "second": [5, 0]}]}
    found, signal, noise = effects_of(TARGETS, LINES, sided)
    pairs = (1, 3), (5, 0)
    for family, whole, statistic in (
        ("total correlation", signal + noise, rho),
        ("total decorrelation", signal + noise, less),
        ("label noise", noise, rho),
    ):
        (effect,) = found[family]
        is_mean_of(effect, pseudovalues(over(statistic), *columns(whole, *pairs)))
        assert effect.at["angle"] == 45


def test_decorrelation_against_the_law_by_hand():
    law = xr.Dataset({"law": ("line", [0.9, 0.6]), "alternative_gap": ("line", [0.2, 0.05])})
    found, _, noise = effects_of(PRESCRIBED, [10.0, 30.0, 100.0], {}, law)
    near, far = found["decorrelation against the law"]
    own = pseudovalues(less, *columns(noise, (0, 1)))
    is_mean_of(near, own / 0.1 - 1)
    is_mean_of(far, pseudovalues(less, *columns(noise, (0, 2))) / 0.4 - 1)
    assert [effect.at["alternative_gap"] for effect in (near, far)] == [0.2, 0.05]
    assert [effect.at["angle"] for effect in (near, far)] == [30, 100]


def test_lines_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="not among the lines"):
        effects_of(SLOPED, [*LINES[:-1], 151.0], {"opened": [30]})


def test_the_pairs_of_the_file():
    """Directions, spreads of keys and principal angles, from the frames themselves."""
    experiment = load_experiment("angle_units", "standard")
    about = experiment.module("effects").about
    assert about(135, 90) == (0, 90)
    assert about(0, 45) == (22.5, 157.5)
    slope = np.array([[1, 0.9], [0.9, 1]])
    own = 0
    for point in experiment.points:
        heads = point.spec.build().heads
        frames = np.asarray(heads.frames, float)
        if point.coordinates["design"] == "correlation 0.9":
            spread = np.sqrt(np.einsum("hdj,de,hej->h", frames, slope, frames))
            if isinstance(point.coordinates["heads.bandwidth"], str):
                wanted = {"gaussian": 0.5, "softmax": 1.3}[point.spec.heads.kernel]
                np.testing.assert_allclose(np.asarray(heads.bandwidth) / spread, wanted, 1e-6)
                own += 1
            along = np.array([[1, 1], [1, -1]]) / 2**0.5
            cosines = np.abs(frames[..., 0] @ along.T)
            assert np.isclose(cosines, 1).sum(0).tolist() == [1, 1]
        if point.coordinates["population"] == "targets of one direction":
            gram = np.abs(frames[..., 0] @ frames[..., 0].T)
            for two in experiment.settings["sided"]:
                cosine = np.cos(np.deg2rad(two["angle"]))
                for first, second in (two["first"], two["second"]):
                    assert gram[first, second] == pytest.approx(cosine, abs=1e-6)
                half = np.cos(np.deg2rad(two["angle"] / 2))
                np.testing.assert_allclose(np.abs(frames[two["first"], 0, 0]), half, 1e-6)
            across = [two["second"] for two in experiment.settings["sided"][::2]]
            np.testing.assert_allclose(frames[across, 0, 0], 0, atol=1e-7)
    assert own == 2


def quadrature(angle, kernel, bandwidth, scale=0.5, nodes=60):
    """The correlation of two lines, E r_hg/E r_hh, by product rules over keys and queries."""
    at, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / weight.sum()
    cosine, sine = np.cos(angle), np.sin(angle)

    def kernel_at(query, key):
        if kernel == "softmax":
            return np.exp(query * key / bandwidth**2)
        return np.exp(-((query - key) ** 2) / (2 * bandwidth**2))

    first, second = scale * at[:, None], scale * (cosine * at[:, None] + sine * at[None])
    one = kernel_at(first[..., None, None], at[:, None])  # (x1, 1, z1, 1)
    other = kernel_at(second[..., None, None], cosine * at[:, None] + sine * at[None])
    mean = np.einsum("qxzy,z->qx", one, weight)[:, :1]
    means = other @ weight @ weight
    cross = np.einsum("qxzy,y->qxz", other, weight) * one[..., 0] @ weight
    square = np.einsum("qxzy,z->qx", one**2, weight)[:, :1]
    return (cross / (mean * means) @ weight @ weight) / (square / mean**2)[:, 0].dot(weight)


@pytest.mark.parametrize(("kernel", "bandwidth"), [("softmax", 1.1), ("gaussian", 0.9)])
def test_the_law_and_its_alternatives_by_quadrature(kernel, bandwidth):
    point = next(
        p
        for p in load_experiment("angle_units", "smoke").points
        if p.coordinates["population"] == "prescribed angles"
    )
    changes = {"kernel": kernel, "bandwidth": bandwidth, "width": 2}
    heads = point.spec.heads.model_copy(update=changes)
    wide = replace(point, spec=point.spec.model_copy(update={"heads": heads}))
    found = load_experiment("angle_units").module("predict").laws(wide)
    angles = np.deg2rad([15, 30, 45, 60, 75, 90])
    law = [quadrature(a, kernel, bandwidth, nodes=32) ** 2 for a in angles[[1, 5]]]
    np.testing.assert_allclose(found["law"].values[[1, 5]], law, 1e-4)
    linear = (1 - (1 - law[1] ** 0.5) * 0.25) ** 2
    assert found["linear"].values[1] == pytest.approx(linear, rel=1e-4)
    gaps = [abs((1 - linear) / (1 - law[0]) - 1)]
    if kernel == "softmax":
        other = quadrature(angles[1], "gaussian", bandwidth, nodes=32) ** 2
        gaps.append(abs((1 - other) / (1 - law[0]) - 1))
    assert found["alternative_gap"].values[1] == pytest.approx(min(gaps), rel=1e-2)
    assert found["alternative_gap"].values[5] < 1e-12


def test_one_temperature_for_heads_of_different_spread():
    """theory.md: softmax's own law with a = κ² s_h² s_g²/s², by product rules over queries."""
    slope, kappa, temperature = np.array([[1, 0.9], [0.9, 1]]), 0.5, 1.69
    lines = np.deg2rad([0.0, 120.0])
    frames = np.stack([np.cos(lines), np.sin(lines)], axis=1)
    at, weight = np.polynomial.hermite_e.hermegauss(80)
    nodes = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.outer(weight, weight).ravel() / weight.sum() ** 2
    queries = kappa * nodes @ np.linalg.cholesky(slope).T
    task = Task(DESIGNS["gaussian"](slope), TARGETS_OF["constant"](2), noise_sd=1.0)
    heads = Heads(frames[..., None], "softmax", temperature**0.5)
    noise = predict(task, heads, n=100, queries=queries)["noise_covariance"].values
    whole = 100 * np.einsum("q,qhg->hg", weights, noise)
    inner = frames @ slope @ frames.T
    squared = np.outer(np.diag(inner), np.diag(inner))
    c2, a = inner**2 / squared, kappa**2 * squared / temperature**2
    np.testing.assert_allclose(whole, (1 - 2 * a * c2 - a**2 * c2 * (1 - c2)) ** -0.5, 1e-6)
    along, minor = (
        2 / sum((1 - 2 * kappa**2 * v**2 / temperature**2) ** -0.5 for v in spreads)
        for spreads in ((1.9, 0.1), (0.19, 0.19))
    )
    assert (along, minor) == (pytest.approx(0.755, abs=5e-4), pytest.approx(0.997, abs=5e-4))


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("angle_units", "smoke")


def made(theory, lines, seed=0, change=lambda noise: noise):
    """Batches about theory's covariances, or ones made up from a law; ``change`` the noise."""
    if "integrated_noise_covariance" in theory:
        order = theory.isel(order=0) if "order" in theory.dims else theory
        signal, noise = (
            order[f"integrated_{part}_covariance"].values.copy() for part in ("signal", "noise")
        )
    else:
        noise = np.full((lines, lines), 0.5) + 0.5 * np.eye(lines)
        if "law" in theory:
            noise[0, 1:] = noise[1:, 0] = theory["law"].values
        signal = 0 * noise
    noise = change(noise)
    rng = np.random.default_rng(seed)
    shake = 1 + 1e-4 * rng.normal(size=(2, BATCHES, lines, lines))
    shake = (shake + shake.transpose(0, 1, 3, 2)) / 2
    whole = {
        f"integrated_{part}_covariance": (("batch", "head", "head2"), values * by)
        for part, values, by in zip(("signal", "noise"), (signal, noise), shake, strict=True)
    }
    data = xr.Dataset(whole)
    errors = {f"{name}_mcse": (("head", "head2"), mcse(v.values)) for name, v in data.items()}
    return data.assign(errors).assign_attrs(replicates=99)


@pytest.fixture(scope="module")
def results(experiment):
    predictions = experiment.module("predict").predict(experiment)
    heads = {point.name: point.spec.heads.count for point in experiment.points}
    data = {name: made(theory, heads[name]) for name, theory in predictions.items()}
    return results_of(experiment, data, predictions)
