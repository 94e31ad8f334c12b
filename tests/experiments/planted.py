"""Made-up results of two problems of every experiment, and the effects that they have.

Claims hold in the first problem, and fail in the second. Where theory has the effect, too, it is
the same; of a pair of lists the second one is theory's.
"""

from dataclasses import replace

import numpy as np
import xarray as xr

NAN, HEAD, TWO = np.nan, np.ones((2, 2)), np.array([1, 2])
HALVING, LEVEL = -np.arange(13) * np.log(2), np.arange(6)
ITEMS, RATES = np.array([6, 10, 14, 18]), np.log(2) * np.array([[1], [0.5]])
FALLS = np.array([1, 0.5])[:, None, None]
BY_ORDER = {"log_scaled": np.array([[-5, -6, -4], [-5, -4, -6]])}
KEYS = np.log(2.0 ** np.arange(7, 28, 2))
DECAY = np.stack([4.0**-LEVEL, 1 - 0.9 * (LEVEL == 5)])[:, None]
DECAY = DECAY * np.array([[1, 0.5, 1.5], [1, 0.5, 2]])[..., None]
SPLIT = np.array([[2, 1, 1.5, 1.8, 2.5], [1, 2, 2.5, 3, 1.5]])
SHARE = 2.0 ** np.arange(-4, 1)
MIXED = {"mse": np.array([[3, 2, 1], [1, 2, 3]])}
MORE = np.array([1, 1.2])[:, None, None, None]
ERRORS = np.array([[2, 1.96, 2.02, 1.96], [2, 2.6, 3, 2.6]])
VARIANCE, OFFSET = np.array([[1, 1], [1, 8], [1, 1]]), np.array([[0], [0.5], [0]])
ALIKE = np.array([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8]])
POOLED = VARIANCE * (ALIKE + (1 - ALIKE) / np.array([[4], [16], [4]]))


def subset_sum_law(items):
    """Minus the log of √n′ 2^−n′."""
    return np.array(items) * np.log(2) - np.log(items) / 2


TABLE = {
    # The best inner split errs half as much as an end, or more; d_k* grows like a log, H* like D.
    "allocation": (
        {
            "margin": [0.5, -0.6],
            "known": [1, 1],
            "inner": [1, 1],
            "end": [0, 0],
            "by_keys": [2 + 0.8 * KEYS, 1 + 3 * KEYS**0.5],
            "by_budget": [np.full((3, 5), 4), np.tile(2.0 ** (0.3 * LEVEL[:5]), (3, 1))],
        },
        {"single": SPLIT * (2 - SHARE), "pair": SPLIT * np.where(SHARE < 1, 1 - SHARE, 3)},
        {
            "allocation": [[0.5], [-0.6]],
            "simulated": [[0.5], [-1]],
            "roads": [0, 0.25],
            "heads-linear": [0.1, -0.2],
            "exponent, one target": [1, 0.7],
        },
    ),
    "angles": (
        {"correlation": [0.4, 0.5], "gaussian": [0.4, 0.52], "product": [0.005, 0.3]},
        {"pair": np.array([[0.04, 0.08], [0.04, 0.03]]), "own": [0.1] * 2},
        {
            "rise": [0.4, -0.1],
            "one curve": [0, 0.25],
            "product": [0.005 / 1.5, 0.3],
            "series": [0, 0.2],
        },
    ),
    # Attention alone twice, then a residual stream twice.
    "collapse": (
        {
            "block": ["attention alone"] * 2 + ["residual stream"] * 2,
            "rate": [-1, -np.log(2), NAN, NAN],
            "depth": [6] * 4,
            "lost": [[0.5, 0.1], [0.01, 0.3], [0.5, 0.6], [0.2, 0.2]],
        },
        {
            "path": [-(3.0 ** np.arange(13)), HALVING, HALVING, HALVING],
            "ends": np.log([[1e-3, 1e-6], [1e-3, 1e-3 / 2**6], [0.5, 0.5], [0.5, 0.25]]),
            "lost": np.array([[0.5, 0.1], [0.01, 0.3], [0.5, 0.6], [0.2, 0.3]]),
        },
        {
            "order": [0, -2 / 3, -2 / 3, -2 / 3],
            "soon": -6 + np.array([3**6 / np.log(10)] + 3 * [6 * np.log10(2)]),
            "depth": [0.1 - 3 / np.log10(2), -5.9, 0.1, -0.9],
            "lost": [0.45, -0.04, 0.45, 0.15],
            "gates": [[0.8], [-29], [-0.2], [-0.5]],
            "rate": [np.log(1000) / 6 - 1, 0, NAN, NAN],
            "recovered": [0, 0, 0, 0.5],
        },
    ),
    # At 24 layers memory leaves a smaller residual, more likeness, fewer keys and a larger error.
    "hidden_scores": (
        {"depth": [6, 12], "deep": [12, 24], "mse": [[2, 1], [1, 4]]},
        {
            "log_residual": np.array([[-9, -8], [-9, -9.5]]),
            "cosine": np.array([[0.8, 0.5], [0.6, 0.7]]),
            "keys": np.array([[0.5, 0.6], [0.5, 0.4]]),
            "mse": np.array([[2, 1], [2, 8]]),
        },
        {
            "residual": [[1], [-0.5]],
            "cosine": [[0.3], [-0.1]],
            "keys": [[0.2], [-0.2]],
            "error": [[0.5], [-3]],
            "roads": [0, 1],
        },
    ),
    "hierarchy": (
        {"error": DECAY, "levels": [8, 12], "definite": [0, 0.5]} | MIXED,
        {"error": DECAY, "remainder": np.array([[9, 4, 3, 1], [9, 4, 5, 8]])} | MIXED,
        {
            "decay": [0.1, 0.1 - (4 / 7) ** 0.5],
            "parts": [0, 1 / 3],
            "roads": [0, 0],
            "correction": [[0.75], [-1]],
            "third cumulant": [[0.25], [-0.25]],
            "definite": [0, 0.5],
            "one bandwidth": [1, -1 / 3],
            "ensemble": [0.5, -0.5],
        },
    ),
    "kq_svd": (
        {
            "least": [0.8, 1.6],
            "keys_only": [1.6, 2],
            "cost": [0.25, 1.5],
            "mse": [[2, 1], [1, 3]],
        },
        {
            "score": np.array([[1, 2, 9, 0], [2, 1, 9, 0]]),
            "output": np.array([[3, 6, 4, 1], [5, 4, 6, 6]]),
            "bound": [0.5, 1.5],
            "mse": np.array([[2, 1], [1, 3]]),
        },
        {
            "scores": [[0.5], [-1]],
            "outputs": [[0.5, 0.25], [-0.25, 1 / 6]],
            "centring": [[2 / 3], [-0.2]],
            "bound": [0.5, -0.5],
            "saved": [0.5, 0.2],
            "calibration": [0, -0.5],
            "estimator": [-0.5, 2],
        },
    ),
    "lottery_tickets": (
        {
            "log_largest": -FALLS * subset_sum_law([12, 20, 28, 36])[:, None] * np.ones(6),
            "needed": np.array([1, 1.3])[:, None, None, None]
            * (LEVEL + 3 + np.arange(12, 25, 3)[:, None])
            * np.ones((4, 1, 1)),
            "log_entry": -RATES * ITEMS[-2:],
            "accuracy": [0.1, 0.1],
            "dimension": [2, 2],
        }
        | BY_ORDER,
        {
            "log_output": -FALLS[..., 0] * subset_sum_law(ITEMS),
            "mean_output": np.exp(-0.12 * TWO[:, None] * ITEMS),
            "log_entry": -RATES * ITEMS + [[0], [0.1]],
            "log_ratio": 0.2 * np.log(2) * ITEMS * [[0], [1]],
            "failed": np.array([[0.05, 0.01], [0.2, 0.15]]),
            "error_by_length": np.array([[1, 1], [1, np.e**2]]),
        }
        | BY_ORDER,
        {
            "rate": [0.1, -0.4],
            "entries": [0.1, -0.2],
            "accuracies": [0.1, -0.2],
            "items by entries": [1, 1.3],
            "larger": [1, -1],
            "entry's scale": [1, -1],
            "blocks": [0.1, -0.1],
            "fit": [1, 2],
            "width": [0.05, -0.1],
            "constant": [0.09, -0.05],
            "length": [0, 2],
            "law": [0, 0.1],
        },
    ),
    # At its best temperature merging saves 2 % or costs 30; at that of all keys it costs 1 or 50 %.
    "merging": (
        {"mse": [1.96, 2.6 / 1.1], "variance": [1.96 / 1.2, 2.6 / 1.2]},
        {"mse": ERRORS, "variance": ERRORS},
        {
            "competitive": [0.07, -0.25],
            "dearer": [[-2 / 98], [3 / 13]],
            "competitive at the same temperature": [0.04, -0.45],
            "gap of the error": [0, 0.1],
            "gap of the variance": [0.2, 0.2],
        },
    ),
    # From correlation 0.8 to 0.2: the first pool gains, the second pays more; and back.
    "unification": (
        {
            "agents": [4, 16, 4],
            "predicted": [1, 1, 1],
            "error": (POOLED + OFFSET) / [[1], [1.1], [1]],
        },
        {
            "mse": POOLED + OFFSET,
            "mean_head_mse": VARIANCE + OFFSET,
            "ensemble_variance": POOLED,
            "variance": VARIANCE,
        },
        {
            "decorrelation": [0.6, 0.6, -0.6],
            "fall": [[1 - 0.4 / 0.85], [1 - 2.5 / 1.3125], [NAN]],
            "fall of many": [[0.75], [-0.8 / 1.3], [NAN]],
            "roads": [0, 0.1, 0],
        },
    ),
}


def batches(value):
    """16 batches about a mean."""
    wobble = np.random.default_rng(0).normal(size=16)
    return np.multiply.outer(1 + 1e-4 * (wobble - wobble.mean()), value)


def assigned(data, values):
    """Theory's dataset with these values by problem."""
    count = len(next(iter(values.values())))
    few = data.isel(number=np.zeros(count, int))
    for name in {"in_range", "accurate"} & {*few}:
        values = {name: np.ones(few[name].shape, bool)} | values
    return few.assign({k: (few[k].dims, np.asarray(v)) for k, v in values.items()})


def planted(experiment, results):
    """The results with planted values in place of those of a run, and the effects expected.

    The ``plant`` of the experiment's tests.py plants them, or a function or a row of this file;
    None where there are none.
    """
    name = experiment.name
    if (tests := experiment.module("tests")) is not None:
        return tests.plant(results)
    if name not in TABLE:
        return globals()[name](results) if name in globals() else None
    law, simulated, expected = TABLE[name]
    one = next(iter(results.estimates.values()))
    few = one.isel(batch=np.zeros(16, int))
    count = len(next(iter(law.values())))
    estimates = {
        f"{i:04d}": few.assign({k: (one[k].dims, batches(v[i])) for k, v in simulated.items()})
        for i in range(count)
    }
    theory = results.predictions | {"law": assigned(results.predictions["law"], law)}
    return replace(results, estimates=estimates, predictions=theory), expected


def rates(results):
    """All fall at the stated rate; or 0.15 faster, and ever more heads by a logarithm."""
    law, stated, heads = results.predictions["law"], np.array([-0.5, -0.6]), np.array([2, 8])
    n = law["n"].values
    one = n ** (stated - [0, 0.15])[:, None]
    averaged = one * (heads**stated * [1, 1.2])[:, None]
    error = np.stack([one, averaged, [one[0], np.log(n) ** (25 * stated[1])]], 1)
    law = assigned(law, {"error": error, "exponent": stated, "heads": heads})
    sample = error[:, :2, :3] * np.array([1, 1.3])[:, None, None]
    estimates = {
        f"n = {size:.0f}": xr.Dataset(
            {"mse": (("batch", "pools"), batches(sample[..., k].ravel()))}
        )
        for k, size in enumerate(n[:3])
    }
    names = [
        f"{part}, {pool}" for part in ("far", "common") for pool in ("one head", "averaged heads")
    ]
    expected = {name: [0.1, -0.05] for name in names} | {"far, ever more heads": [0.1, -0.1]}
    expected |= {"constant": [0, 0.2], "roads": [0, 0.3]}
    return replace(results, estimates=estimates, predictions={"law": law}), expected


def temperature(results):
    """β = 1 and 2; the matched rule loses 2 % or 20 %, softmax 50 % or 1 %."""
    law = results.predictions["law"]
    ratio, loss = law["ratio"].values, {"softmax": [0.5, 0.01], "sparsemax": [0.02, 0.3]}
    loss |= {"1.5-entmax": [0.2, 0.2], "top-k": [0.3, 0.1]}
    rules = law["rule"].values
    losses = 1 + np.array([loss.get(name, [0.3, 0.3]) for name in rules]).T
    # At its best temperature softmax errs more than all others, or less.
    least = np.where(rules == "softmax", [[1 / 0.9], [1 / 1.1]], 1)
    at_context = least * losses
    best = np.ones((*at_context.shape, len(ratio)))
    made = {"kept": best * at_context[..., None], "best": best * least[..., None], "known": best}
    made |= {"tuned": best * ratio ** (-1 / 3), "smoothness": [1, 2], "power": [2, 2]}
    made |= {"attended": best * ratio ** np.array([0.8, 1.1])[:, None, None], "width": [1, 1]}
    law = assigned(law, made | {"keys": [400, 200]})
    pair = results.predictions["heads"]
    n = pair["size"].values
    pairs = {"signal": [[1, 1.04], [1, 1.2]], "noise": [[2, 2]] * 2, "gap": [1 / n, n**-2.0]}
    three = np.stack([at_context, least, at_context * TWO[:, None]], -1) * MORE[:, 0]
    dims = ("batch", "problem", "rule", "temperature")
    estimates = {"tasks": xr.Dataset({"error": (dims, batches(three))})}
    for keys, more in ((400, 1), (200, 1.1)):
        terms = {"signal": more * HEAD[None], "noise": 2 * more * HEAD[None]}
        estimates[f"power 2, {keys} keys"] = xr.Dataset(
            {
                f"integrated_{k}_covariance": (("batch", "problem", "head", "head2"), batches(v))
                for k, v in terms.items()
            }
        )
    theory = {"law": law, "heads": assigned(pair, pairs)}
    return replace(results, estimates=estimates, predictions=theory), {
        "matched stays": [0.03, -0.15],
        "matched stays, learned": [0.03, -1.35],
        "softmax falls behind": [0.45, -0.04],
        "1.5-entmax against softmax": [[1 - 1.2 * 0.9 / 1.5], [1 - 1.2 * 1.1 / 1.01]],
        "1.5-entmax against top-k": [[1 - 1.2 / 1.3], [1 - 1.2 / 1.1]],
        "re-tuned": [[0.1], [-0.1]],
        # 2(β − ν)/(ν(2β + 1)) is −1/3 and 0 for ν = 2; attended keys grow like n^(4/5).
        "exponent of the temperature": [0.1, 0.1 - 1 / 3],
        "exponent of the attended keys": [0.1, -0.2],
        "error": [0, 0.2],
        **{name: [0, 0.1] for name in ("variance", "signal", "noise")},
        "held radii": [0.01, -0.15],
        "remainder": [0.1, -0.9],
    }


def training(results):
    """The error falls by 0.2, of which covariance is ¾ and bias ¼; or all terms rise."""
    one = next(iter(results.estimates.values()))
    rng = np.random.default_rng(0)
    terms = {
        "mse": (1, [0.8, 1.2]),
        "alone": (1, [1.1, 0.9]),
        "variance": (0.5, [0.35, 0.6]),
        "covariance": (0.4, [0.25, 0.55]),
        "subspaces": (0.2, [0.9, 0.1]),
        "outputs": (0.2, [0.3, 0.1]),
        "selectivity": (0.5, [0.4, 0.3]),
    }
    data = {}
    for name, (others, joint) in terms.items():
        values = others + 1e-5 * rng.normal(size=(2, 8, 4))
        values[..., 1] += np.array(joint)[:, None] - others
        data[name] = one[name].dims, values
    falls = {
        "covariance against bias": [[0.15 - 0.05], [-0.15 + 0.1]],
        "gain": [[0.2], [-0.2]],
        "variance": [[0.15], [-0.1]],
        "alone": [[0.1], [-0.1]],
    }
    expected = {"subspaces": [0.7, -0.1], "outputs": [0.1, -0.1]}
    for control in ("identical", "separate", "start"):
        expected |= {f"{name}, {control}": values for name, values in falls.items()}
    made = {"2 of 2": xr.Dataset(data, {"layer": one["layer"]})}
    return replace(results, estimates=made), expected


def house(results):
    """The error falls by a tenth at every rung, or rises; so do the variance kept and the gain."""
    law = results.predictions["law"].isel(number=[0, 1])
    one = next(iter(results.estimates.values())).isel(batch=np.zeros(16, int))
    rungs = np.array([[1, 0.9, 0.81, 0.729, 0.6561, 0.65, 0.5], [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]])
    estimates = {}
    for number, rung in enumerate(rungs):
        terms = {"bias": 0.6 * rung, "variance": 0.4 * rung, "head_bias": 0 * rung + 0.6}
        terms |= {"head_variance": 0 * rung + 0.8, "half_error": 0 * rung + 2}
        terms |= {"noise": 0 * rung + [0.6, 0.9][number], "head_noise": 0 * rung + 1}
        terms = {
            name: values[None, :, None] + np.zeros((2, 7, 2)) for name, values in terms.items()
        }
        probes = {f"probe_{k}": np.full(8, v) for k, v in PROBED.items()}
        made = {k: (one[k].dims, batches(v)) for k, v in (terms | probes).items()}
        estimates[f"{number:04d}"] = one.assign(made)
    stated = {f"theory_{name}": [value, 0.8 * value] for name, value in PROBED.items()}
    law = assigned(law, stated | {"heads": [2, 2], "by_angles": [0.2, 0.9], "fits": [1, 1]})
    law = law.assign(covered=law["covered"] | True)
    results = replace(results, estimates=estimates, predictions={"law": law})
    steps = [[0.1] * 4, [-0.1, -1 / 11, -1 / 12, -1 / 13]]
    falls = {"hdi-monotone": steps, "hdi": steps, "not-heads-alone": [[0.3439], [-0.4]]}
    falls |= {"extremes": [[1 - 0.5 / 0.6561], [1 - 1.6 / 1.4]]}
    falls |= {"adding-heads": [[0.3439 / 2], [-0.2]]}
    cells = [f", {reading}, {t}" for reading in ("given", "in law") for t in ("common", "own best")]
    expected = {name + cell: value for name, value in falls.items() for cell in cells}
    expected |= {name: [0, 0.25] for name in ("mse", "bias", "variance")}
    return results, expected | {"head_variance": [0, 0.25], "angles": [0, 1]}


PROBED = {"bias": 0.6, "variance": 0.4, "head_variance": 0.8}
