"""What experiments make of results, against a few lines of NumPy on made-up numbers.

Every test states what a family of effects is *of*: which points, which ratio or difference, with
which error and which bound. Batches of two points differ in number, and the first ones share their
draws, so that an error that is not that of the pair, or of other batches, is another number.
"""

from itertools import product

import numpy as np
import pytest
import xarray as xr

from sims.terms import SCALARS
from tests.experiments.by_hand import (
    drawn,
    families,
    is_mean_of,
    is_ratio_of,
    pseudovalues,
)

BATCHES = 24
PAIR = ("head", "head2")
PARTS = ("bias_product", "signal_covariance", "noise_covariance")


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def shared(rng):
    return rng.normal(size=BATCHES)


def test_adding_heads(rng, shared):
    """Errors of the first heads of a point: every doubling, every gain, paired."""
    shapes = [(8, 4, 0.0), (8, 4, 1.0), (2, 8, 0.0), (2, 8, 1.0), (1, 16, 0.0)]
    estimates, predictions, at, whole = {}, {}, {}, {}
    for index, (heads, width, kind) in enumerate(shapes):
        name, count = f"p{index}", BATCHES - 3 * index
        names = ("heads.count", "heads.width", "design.correlation")
        at[name] = dict(zip(names, (heads, width, kind), strict=True))
        parts = [drawn(rng, shared[:count], s, (heads, heads)) for s in (0.1, 0.3, 0.6)]
        data = {f"integrated_{p}": (("batch", *PAIR), v) for p, v in zip(PARTS, parts, strict=True)}
        estimates[name] = xr.Dataset(data)
        sizes = zip(PARTS, (0.2, 0.3, 0.5), strict=True)
        law = {f"integrated_{p}": (PAIR, np.full((heads, heads), s)) for p, s in sizes}
        predictions[name] = xr.Dataset(law | {"mse": 1.0})
        for size in (1, 2, 4, 8)[: heads.bit_length()]:
            whole[size, width, kind] = sum(parts)[:, :size, :size].mean((1, 2))
    found = families("adding_heads", estimates, predictions, at)
    diverse = [whole[size, 4, 0.0] for size in (1, 2, 4, 8)]
    assert len(found["doubling"]) == 3
    for effect, before, after in zip(found["doubling"], diverse, diverse[1:], strict=False):
        is_ratio_of(effect, after, before, 1.0, -1.0)
    for effect, k in zip(found["gain lost"], range(2), strict=True):
        a, b, c = diverse[k : k + 3]
        is_mean_of(effect, ((a - b) - (b - c)) / diverse[0].mean())
    (against, *_) = found["diverse against aligned"]
    one, other = whole[2, 8, 0.0], whole[2, 8, 1.0]
    is_ratio_of(against, one[: len(other)], other, 1.0, -1.0)
    aligned = [whole[size, 4, 1.0] for size in (1, 2, 4, 8)]
    assert [e.label[0] for e in found["aligned heads"]] == ["2", "4", "8"]
    for effect, more in zip(found["aligned heads"], aligned[1:], strict=True):
        first = whole[1, 4, 1.0]
        np.testing.assert_allclose(effect.values, more / first - 1, rtol=1e-9)
    (gap,) = (e for e in found["gap to first order"] if "4 diverse of width 4" in e.label)
    is_mean_of(gap, whole[4, 4, 0.0] - 1)
    assert gap.at["variance_share"] == pytest.approx(0.8)


def test_angles(rng, shared):
    """Falls between neighbouring angles; gaps with the bounds of numerator and denominator."""
    names, estimates, predictions, at = ("cross_noise_covariance", "noise_variance"), {}, {}, {}
    angles = {"exact": 60.0, "p0": 0.0, "p45": 45.0, "p90": 90.0}
    for index, (name, angle) in enumerate(angles.items()):
        count = BATCHES - 2 * index
        sizes = {names[0]: 1.1 - angle / 100, names[1]: 1.2, "variance": 2.0}
        sizes["ensemble_variance"] = 2.0 - angle / 100
        data = {k: ("batch", drawn(rng, shared[:count], s)) for k, s in sizes.items()}
        estimates[name] = xr.Dataset(data)
        at[name] = {"heads.frames.angle": angle}
        noise = rng.uniform(1, 2, (5, 1, 1)) * (0.5 + 0.5 * np.eye(2))
        law = xr.Dataset({"noise_covariance": (("query", *PAIR), noise), "law": 0.5})
        predictions[name] = law
    bounds = {f"{names[0]}_error": ("order", [np.nan, 0.002])}
    bounds |= {f"{names[1]}_error": ("order", [np.nan, 0.001])}
    exact = dict(zip(names, (0.4, 1.0), strict=True))
    values = {k: ("order", [9.0, v]) for k, v in exact.items()}
    values |= {f"each_{k}": (("order", "batch"), [[v] * BATCHES] * 2) for k, v in exact.items()}
    predictions["exact"] = xr.Dataset(values | bounds, {"order": ["first", "exact"]})
    found = families("angles", estimates, predictions, at)

    def correlation(name, count):
        data = estimates[name]
        return pseudovalues(lambda a, b: a / b, *(data[k].values for k in names))[:count]

    falls = {effect.label: effect for effect in found["fall of the noise correlation"]}
    assert set(falls) == {"p0 to p45", "p45 to p90"}
    for first, second in (("p0", "p45"), ("p45", "p90")):
        count = estimates[second].sizes["batch"]
        paired = correlation(first, count) - correlation(second, count)
        is_mean_of(falls[f"{first} to {second}"], paired)
    assert {e.label for e in found["fall of the variance kept"]} == {"p0 to p90", "p45 to p90"}
    (gap,) = found["gap to exact theory"]
    # 0.002 of 0.4 and 0.001 of 1 move the quotient by 0.5 % and 0.1 %.
    is_mean_of(gap, correlation("exact", None) / 0.4 - 1, bound=0.006)


def test_decomposition(rng, shared):
    """n_eff is that of the mean of 1/n_eff, which variances are averages of."""
    raw = {k: drawn(rng, shared) for k in (*SCALARS, "raw_mse")}
    law = {k: ("order", [0.8, 0.9]) for k in SCALARS}
    law |= {f"{k}_error": ("order", [np.nan, 0.003]) for k in SCALARS}
    keys = ("order", "query", "head"), np.array([[[10.0], [1000.0]]] * 2)
    predictions = {"p": xr.Dataset(law | {"n_eff": keys}, {"order": ["first", "exact"]})}
    estimates = {"p": xr.Dataset({k: ("batch", v) for k, v in raw.items()})}
    found = families("decomposition", estimates, predictions)
    (first,), (labels,) = found["first order, noise variance"], found["drawn labels"]
    is_mean_of(first, raw["noise_variance"] / 0.8 - 1)
    assert first.at["n_eff"] == pytest.approx(2 / (1 / 10 + 1 / 1000))
    is_mean_of(labels, (raw["raw_mse"] - raw["mse"]) / raw["mse"].mean())


def test_finite_sample(rng, shared):
    """A rate is fitted to all sizes of a kernel's line, and gaps to exact theory have its bound."""
    sizes = np.array([4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    law = {k: ("order", [1.1, 1.0]) for k in SCALARS}
    law |= {f"{k}_error": ("order", [np.nan, 0.002]) for k in SCALARS}
    line = np.stack([2 + 1 / sizes, np.full(6, 2.0)])
    law |= {f"curve_{k}": (("order", "curve_n"), line) for k in SCALARS}
    law |= {"curve_n_eff": ("curve_n", sizes / 3)}
    law |= {"n_eff": (("order", "query", "head"), [[[10.0], [1000.0]], [[np.nan], [np.nan]]])}
    prediction = xr.Dataset(law, {"order": ["first", "exact"], "curve_n": sizes})
    raw = {k: drawn(rng, shared) for k in SCALARS}
    estimates = {"p": xr.Dataset({k: ("batch", v) for k, v in raw.items()})}
    at = {"n": 4, "heads.kernel": "softmax", "design": "long keys"}
    found = families("finite_sample", estimates, {"p": prediction}, {"p": at})
    gaps = [
        e for e in found["first order"] if "mean squared error" in e.label or ", mse," in e.label
    ]
    np.testing.assert_allclose([e.x for e in gaps], sizes / 3)
    np.testing.assert_allclose([e.value for e in gaps], 0.5 / sizes)
    size = found["first order, size of the gap in the variance"]
    np.testing.assert_allclose([e.value for e in size], 0.5 / sizes)
    one = next(e for e in found["simulation"] if e.label.startswith("noise_variance"))
    is_mean_of(one, raw["noise_variance"] - 1, bound=0.002)
    assert one.at["first_order_gap"] == pytest.approx(0.1)
    # The mean of 1/n_eff is that of variances; keys of first order, as its own claims have them.
    assert one.at["n_eff"] == pytest.approx(2 / (1 / 10 + 1 / 1000))
    assert one.at["kernel"] == gaps[0].at["kernel"] == "softmax, long keys"


def test_head_count(rng, shared):
    """The variance of the average over that of one; neighbouring angles at the most heads."""
    estimates, predictions, at = {}, {}, {}
    for angle, heads in product((0.0, 30.0, 90.0), (1, 2, 4)):
        name, count = f"{angle} {heads}", BATCHES - int(angle / 10)
        one = drawn(rng, shared[:count], 2.0)
        both = one if angle == 0 or heads == 1 else drawn(rng, shared[:count], 1.0 + 1 / heads)
        data = {"variance": ("batch", one), "ensemble_variance": ("batch", both)}
        estimates[name] = xr.Dataset(data)
        at[name] = {"heads.frames.angle": angle, "heads.count": heads}
        law = {"variance": 2.0, "variance_error": 0.002, "ensemble_variance": 1.0}
        law |= {"ensemble_variance_error": 0.003}
        columns = {k: ("order", [1.1 * v, v]) for k, v in law.items()}
        each = {f"each_{k}": (("order", "batch"), [[v] * count] * 2) for k, v in law.items()}
        predictions[name] = xr.Dataset(columns | each, {"order": ["first", "exact"]})
    found = families("head_count", estimates, predictions, at)

    def kept(name):
        data = (estimates[name][k].values for k in ("ensemble_variance", "variance"))
        return pseudovalues(lambda a, b: a / b, *data)

    gaps = {effect.label: effect for effect in found["gap to theory"]}
    assert {"30.0 2", "30.0 4", "90.0 2", "90.0 4"} <= set(gaps)
    is_mean_of(gaps["30.0 4"], kept("30.0 4") / 0.5 - 1, bound=0.004)
    assert len(found["step of the angle"]) == 2
    # A share of the variance before the last doubling.
    (last,) = found["last doubling"]
    few, most = (kept(f"30.0 {heads}").mean() for heads in (2, 4))
    assert last.value == pytest.approx((few - most) / few, rel=1e-3)
    # The jackknife of the batches that both points have.
    pair = [estimates[name].isel(batch=slice(15)) for name in ("30.0 4", "90.0 4")]
    parts = [[d[k].values for k in ("ensemble_variance", "variance")] for d in pair]
    both = [pseudovalues(lambda a, b: a / b, *part) for part in parts]
    is_mean_of(found["step of the angle"][1], both[0] - both[1])


def test_identity():
    """Every gap counts, and the attention moved is held against theory's."""
    rng = np.random.default_rng(3)
    estimates, at = {}, {}
    for name, part, spread in (("a", "single", None), ("b", "layer", None), ("c", "tilt", 0.3)):
        variables = ("float64", "float32", "mixed", "plain", "tilted", "total_variation")
        values = {k: (("batch", "replicate"), rng.uniform(0.2, 0.4, (8, 3))) for k in variables}
        estimates[name], at[name] = xr.Dataset(values), {"part": part, "spread": spread}
    predictions = {"c": xr.Dataset({"total_variation": 0.25})}
    found = families("identity", estimates, predictions, at)
    moved = estimates["c"]["total_variation"].values.mean(1)
    is_mean_of(found["attention moved"][0], moved)
    is_mean_of(found["attention moved, over the law"][0], moved / 0.25 - 1)
    np.testing.assert_array_equal(
        np.ravel(found["without the tilt"][0].values), estimates["c"]["plain"].values.ravel()
    )


def weighting(error):
    """Results of `weighting` with one regime of two heads, the second far worse than the first."""
    rng = np.random.default_rng(5)
    wobble = 1 + 0.05 * rng.normal(size=(BATCHES, 1, 1))
    matrix = np.array([[1.0, 1.5], [1.5, 4.0]])
    zero = np.zeros((2, 2))
    sizes = dict(zip(PARTS, (0.2, 0.3, 0.5), strict=True))
    estimates = {
        "unequal": xr.Dataset(
            {f"integrated_{k}": (("batch", *PAIR), s * wobble * matrix) for k, s in sizes.items()}
        ),
        "cost": xr.Dataset(
            {
                "error": (("batch", "pairs", "rule"), rng.uniform(1, 2, (BATCHES, 2, 3))),
                "oracle": (("batch", "rule"), rng.uniform(0.5, 1, (BATCHES, 3))),
            },
            {"pairs": [8, 16], "rule": ["uniform", "optimal", "non_negative"]},
        ),
    }
    law = {f"integrated_{k}": (("order", *PAIR), [s * matrix]) for k, s in sizes.items()}
    law |= {f"integrated_{k}_error": (("order", *PAIR), [zero]) for k in PARTS}
    law["integrated_noise_covariance_error"] = (("order", *PAIR), [error])
    said = {"heads": 2, "noise_variance": 0.5}
    cost = xr.Dataset({"inflation": ("pairs", [0.3, 0.2])}, {"pairs": [8, 16]}, said)
    predictions = {"unequal": xr.Dataset(law, {"order": ["exact"]}), "cost": cost}
    settings = {"regimes": ["unequal"], "cost": {"repeats": 1}}
    return families("weighting", estimates, predictions, settings=settings), estimates["cost"]


def test_weighting():
    """The bound on the gain is all that errors of the matrix can move it by: weights 5/4, −1/4.

    Errors of the entry off the diagonal alone, where both weights' products count with one sign.
    """

    def gain(matrix):
        return 1 - 4 / np.linalg.inv(matrix).sum() / matrix.sum()

    matrix = np.array([[1.0, 1.5], [1.5, 4.0]])
    step = 1e-5 * np.array([[0.0, 1.0], [1.0, 0.0]])
    found, cost = weighting(step)
    (effect,) = found["gain less theory's"]
    moved = max(abs(gain(matrix + sign * step) - gain(matrix)) for sign in (-1, 1))
    assert effect.bound == pytest.approx(moved, rel=1e-3)
    # Batches of one shape agree on the weights.
    assert effect.value == pytest.approx(0, abs=1e-12)
    assert found["gain"][0].value == pytest.approx(gain(matrix))
    error = cost["error"].values
    even = error[:, :, 0].mean()
    least = cost["oracle"].values[:, 1]
    for k in range(2):
        excess = (error[:, k, 1] - least) / (0.3, 0.2)[k]
        is_ratio_of(found["cost over the law"][k], excess, 0.5 + least, 1.0)
        is_mean_of(found["optimal less uniform"][k], (error[:, k, 1] - error[:, k, 0]) / even)


def test_diversity_counterexample(rng, shared):
    """The ratio of two errors over exact theory's, whose bound is that of both errors."""
    gram = np.array([[[1.0, 0.9], [0.9, 1.0]], [[1.0, 0.1], [0.1, 1.0]]])
    estimates, predictions = {}, {}
    for index, name in enumerate(("less", "more")):
        count = BATCHES - 4 * index
        estimates[name] = xr.Dataset({"mse": ("batch", drawn(rng, shared[:count], 1 + index))})
        parts = {f"integrated_{k}": (("order", *PAIR), [gram[index]] * 2) for k in PARTS}
        law = parts | {"mse": ("order", [1.0 + index, 1.1 + index])}
        law |= {
            "mse_error": ("order", [np.nan, 0.011 + 0.0315 * index]),
            "gram": (PAIR, gram[index]),
        }
        predictions[name] = xr.Dataset(law, {"order": ["first", "exact"]})
    columns = {"less": "less", "more": "more", "searched_ratio": 2.1, "searched_rise": 0.5}
    search = {k: ("search", [value]) for k, value in columns.items()}
    predictions["less"] = predictions["less"].assign(search).assign_coords(search=["pair"])
    settings = {"regimes": {}, "drawn_frames_alone": {}, "resolution": 0.02}
    settings["counterexamples"] = {"pair": {"indices": ["mean, geometric"]}}
    found = families("diversity", estimates, predictions, settings=settings)
    less, more = (estimates[name]["mse"].values for name in ("less", "more"))
    law = 2.1 / 1.1
    (gap,) = found["counterexamples, ratio"]
    below = law * less[: len(more)]
    # 1 % of 1.1 and 0.0425/2.1 of 2.1.
    is_ratio_of(gap, more, below, 1.0, bound=0.01 + 0.0425 / 2.1)
    (rise,) = found["counterexamples, rise"]
    is_ratio_of(rise, more, less[: len(more)], 1.0)
    assert found["counterexamples, searched anew"][0].value == pytest.approx(2.1 / 2 - 1)


def test_remainder(rng):
    """First order less exact, over first order; controls of mean 0 take noise away and no more."""
    size, draws = np.array([16, 64]), 200
    controls = rng.normal(size=(BATCHES, draws, 2, 7))
    value = 0.1 + 0.01 * rng.normal(size=(BATCHES, draws, 2)) + 0.05 * controls.sum(3)
    ones = np.concatenate([np.ones((BATCHES, draws, 2, 1)), controls], axis=3)
    squares = np.einsum("brsi,brsj->bsij", ones, ones) / draws
    data = {"controls": (("batch", "size", "control", "other"), squares)}
    names, law = ("noise_variance", "variance"), np.array([2.0, 4.0])
    for name in names:
        products = (value[..., None] * ones).mean(1)
        data[f"{name}_remainder"] = (("batch", "size", "control"), products)
    estimates = {"gaussian": xr.Dataset(data, {"size": size})}
    predictions = {"gaussian": xr.Dataset({k: ("size", law) for k in names}, {"size": size})}
    found = families("remainder", estimates, predictions)["gaussian, total variance"]
    assert [effect.x for effect in found] == size.tolist()
    # 5 standard errors, a false alarm in 10,000 at 23 degrees of freedom.
    assert all(abs(e.value + 0.1 / a) < 5 * e.error for e, a in zip(found, law, strict=True))
    without = value.mean(1).std(0, ddof=1) / np.sqrt(BATCHES) / law
    assert (np.array([e.error for e in found]) < 0.2 * without).all()
