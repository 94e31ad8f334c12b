"""Numbers that captions quote, on results made by hand: each by an expression of its own."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results

BATCHES = 12


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def of_batch(dims, values):
    """A variable over batches and further dimensions."""
    return ("batch", *dims), values


def made(name, estimates, at, predictions=None, settings=None):
    """Results by hand, of as many replicates everywhere."""
    data = {k: d.assign_attrs(replicates=99) for k, d in estimates.items()}
    return Results(name, "smoke", data, predictions or {}, settings or {}, at, {}, {})


def test_collapse_says_which_share_is_left_at_scale_4(rng):
    """One less the mean share that six layers have collapsed, and means of the rest."""
    shares, deficit = rng.uniform(0.6, 0.9, (BATCHES, 9)), rng.uniform(size=(BATCHES, 2, 3))
    directions, gained = rng.uniform(1, 9, (BATCHES, 2)), np.zeros((BATCHES, 4))
    gained[3, 2:] = 1
    lost = np.roll(gained, -1, axis=1)
    estimates = {
        "plain β=4": xr.Dataset({"collapsed": of_batch(["layer"], shares)}),
        "entropies": xr.Dataset(
            {"deficit": of_batch(["scores", "scale"], deficit)},
            {"scores": ["plain", "normed"], "scale": [1, 4, 16]},
        ),
        "channels": xr.Dataset({"open": of_batch(["gates"], directions)}),
        "search": xr.Dataset({"lost": of_batch(["space"], lost),
                              "gained": of_batch(["space"], gained)}),
    }  # fmt: skip
    figure = load_experiment("collapse").module("figure")
    found = figure.numbers(SimpleNamespace(estimates=estimates))
    expected = {
        "left": np.mean([1 - share for share in shares[:, 6]]),
        "plain_deficit": sum(deficit[:, 0, 2]) / BATCHES,
        "normed_deficit": sum(deficit[:, 1, 2]) / BATCHES,
        "open": sum(directions[:, 1]) / BATCHES, "lost": 1, "gained": 2,
    }  # fmt: skip
    assert found == {name: pytest.approx(value) for name, value in expected.items()}


def test_hidden_scores_says_the_largest_gap_of_late_slopes_and_the_range_at_layer_24(rng):
    """``max |slope with memory − slope of plain|``; spread kept at 24 layers, by start."""
    starts, memory = ["zero", "copy"], np.array([0.0, 0.4, 0.7])
    coords, dims = {"start": starts, "memory": memory}, ["layer", "start", "memory"]
    late, normed = rng.normal(size=(2, BATCHES, 30, 2, 3))
    estimates = {"late": late, "normed": normed}
    estimates = {
        name: xr.Dataset({"log_odds": of_batch(dims, odds)}, coords)
        for name, odds in estimates.items()
    }
    for size, worst in (("n=2", -1.0), ("n=3", 0.5)):
        estimates[f"monotone {size}"] = xr.Dataset(
            {"shortfall": of_batch(["start"], np.full((BATCHES, 2), worst))}, {"start": starts}
        )
        estimates[f"energy {size}"] = xr.Dataset(
            {"rise": of_batch(["rule"], np.full((BATCHES, 3), worst + 0.6))},
            {"rule": ["new", "old", "values"]},
        )
    common = {"weights": "tied", "matrix": "gaussian", "score_scale": 1.0}
    at = {name: common | {"part": name.split()[0]} for name in estimates}
    settings = {"depths": {"normed": [12, 24]}, "late_span": 4}
    law = {"late": xr.Dataset({"rate": 0.5})}
    found = load_experiment("hidden_scores").module("figure").numbers(
        made("hidden_scores", estimates, at, law, settings)
    )  # fmt: skip

    slopes = (late[:, 29] - late[:, 25]).mean(0) / 4
    gaps = [abs(slopes[start, k] - slopes[start, 0]) for start in (0, 1) for k in (1, 2)]
    kept = [
        [(normed[:, 23, start, 0] - normed[:, 23, start, k]).mean() for k in (1, 2)]
        for start in (0, 1)
    ]
    expected = {"late": max(gaps), "zero_least": min(kept[0]), "zero_most": max(kept[0]),
                "copy_least": min(kept[1]), "copy_most": max(kept[1])}  # fmt: skip
    assert {k: found[k] for k in expected} == {k: pytest.approx(v) for k, v in expected.items()}
    assert {k: found[k] for k in ("below", "old", "values")} == {
        "below": "n=3", "old": "n=3", "values": "n=3"
    }  # fmt: skip


def test_hierarchy_says_by_how_much_one_estimator_errs_less_than_the_ensemble(monkeypatch, rng):
    """``1 − E_scores/E_outputs`` at far scales; of one bandwidth ``E_single/E_outputs − 1``.

    Errors of all batches are one multiple of another, so that ratios have no error.
    """
    experiment = load_experiment("hierarchy")
    figure, effects = (experiment.module(name) for name in ("figure", "effects"))
    arms = ["scores", "outputs", "single"]
    factors = {"near scales": [0.9, 1.0, 1.02], "far scales": [0.7, 1.0, 1.4]}
    estimates, at = {}, {}
    for name, factor in factors.items():
        errors = rng.uniform(1, 2, (BATCHES, 1)) * factor
        estimates[f"drawn {name}"] = xr.Dataset({"mse": of_batch(["arm"], errors)}, {"arm": arms})
        at[f"drawn {name}"] = {"part": "drawn mixture", "mixture": name}
    estimates["mixture"] = xr.Dataset({"correlation": of_batch(["pair"], np.ones((BATCHES, 1)))})
    at["mixture"] = {"part": "mixture", "mixture": "near scales"}
    names = ("correlation", "convex", "signed")
    law = {"mixture": xr.Dataset({name: ("pair", [1.0]) for name in names})}
    for kind in ("strict", "leak", "needless", "needless, long", "dear"):
        for place, size in enumerate(("T=1 d=1 L=2", "T=3 d=1 L=2", "T=4 d=1 L=2")):
            worst = of_batch([], np.full(BATCHES, 1.0 * (place > 0)))
            own = {"violation": worst, "full rank": worst}
            estimates[f"{kind} {size}"] = xr.Dataset(own)
            at[f"{kind} {size}"] = {"part": kind}
    parts = ("identities", "costs", "definiteness", "truncation", "ranks", "convolutions")
    for name in parts:
        monkeypatch.setattr(effects, name, lambda _results: {})
    settings = {"mixture": {"search": {"levels": [2]}}}
    found = figure.numbers(made("hierarchy", estimates, at, law, settings))
    expected = {"near": 0.02, "far": 0.4, "scores": 0.3}
    assert {k: found[k] for k in expected} == {k: pytest.approx(v) for k, v in expected.items()}
    for name in ("strict", "leak", "needless", "crowded", "dear"):
        assert found[name] == "T=3 d=1 L=2"


def test_kq_svd_says_which_share_of_the_error_centring_removes(monkeypatch, rng):
    """``1 − e^{−mean log(E_plain/E_centred)}`` at the last key mean, and shares of heads and draws.

    The bound is broken from the first length on whose mean ratio is above 1, by the least excess.
    """
    experiment = load_experiment("kq_svd")
    figure, effects = (experiment.module(name) for name in ("figure", "effects"))
    estimates, at, errors = {}, {}, {}
    names = ("score_kq", "output_kq", "score_k", "output_k", "score_centred", "output_centred")
    for mean in (0.0, 1.0, 3.0):
        own = errors[mean] = {k: rng.uniform(0.5, 1.5, (BATCHES, 5)) for k in names}
        own["score_centred"] = own["score_kq"] * rng.uniform(0.1, 0.5, (BATCHES, 5))
        point = f"random heads mean={mean:g}"
        estimates[point] = xr.Dataset({k: of_batch(["replicate"], v) for k, v in own.items()})
        at[point] = {"part": "head", "mean": mean}
    for length, size in ((3, 0.9), (9, 1.02), (11, 1.07)):
        estimates[f"spectral T={length}"] = xr.Dataset(
            {"ratio": of_batch([], np.full(BATCHES, size))}
        )
        at[f"spectral T={length}"] = {"part": "spectral", "length": length}
    law = {}
    for n, ratio, worse in ((100, 1, 0.2), (200, 1, 0.35), (200, 4, 0.45)):
        point = f"calibration n={n} ratio={ratio}"
        values = {"risk": 1.5, "loss": 1.0, "rival": 1.6, "worse": worse}
        estimates[point] = xr.Dataset(
            {k: of_batch([], np.full(BATCHES, v)) for k, v in values.items()}
        )
        at[point] = {"part": "calibration", "n": n, "ratio": float(ratio), "angle": "isotropic"}
        law[point] = xr.Dataset({"least": 1.0, "excess": 0.5, "keys_gap": 1.0, "neighbour": 0.5})
    rises = {"noisy": 0.8, "quiet": 3.0}
    for regime, factor in rises.items():
        base = rng.uniform(1, 2, BATCHES)
        sizes = np.stack([base, 1.5 * base, factor * base], axis=1)
        estimates[f"drawn heads {regime}"] = xr.Dataset(
            {k: of_batch(["kept"], sizes) for k in ("head", "pool")}, {"kept": [8, 4, 1]}
        )
        at[f"drawn heads {regime}"] = {"part": "drawn heads", "regime": regime}
    for name in ("caches", "changes", "bounds"):
        monkeypatch.setattr(effects, name, lambda _results: {})
    found = figure.numbers(made("kq_svd", estimates, at, law))

    last = errors[3.0]
    gain = np.mean(np.log(last["score_kq"] / last["score_centred"]))
    disagree = [
        np.mean((own["score_kq"] < own["score_k"]) != (own["output_kq"] < own["output_k"]))
        for own in errors.values()
    ]
    expected = {
        "centring": 1 - np.exp(-gain), "disagree_least": min(disagree),
        "disagree_most": max(disagree), "broken_at": 9, "broken_by": 0.02, "worse": 0.35,
    }  # fmt: skip
    assert {k: found[k] for k in expected} == {k: pytest.approx(v) for k, v in expected.items()}
    assert found["rise"] == {k: pytest.approx(v - 1) for k, v in rises.items()}


def test_lottery_tickets_says_the_largest_excess_at_narrow_and_at_wide_widths(monkeypatch, rng):
    """``exp max mean log(quantile/ε)`` over points with C = 1/ln 2, and with C = 8; fits of curves.

    Exact exponentials: the output's median by its own rate, the mean by another.
    """
    items, coords = np.array([4, 8, 12, 16, 20]), {"per_entry": [4, 8, 12, 16, 20]}
    estimates, at = {}, {}
    for target, decay in (("within", 0.3), ("products", 0.1)):
        curves = {"median_output": np.exp(-decay * 2 * items), "median_entry": 0.5**items,
                  "mean_output": 0.6 * np.exp(-0.07 * 2 * items)}  # fmt: skip
        data = {k: of_batch(["per_entry"], np.tile(v, (BATCHES, 1))) for k, v in curves.items()}
        estimates[f"curve {target}"] = xr.Dataset(data, coords)
        at[f"curve {target}"] = {"part": "curve", "d": 2, "target": target, "blocks": 1}
    logs = {}
    for constant, size in (("1/ln2", 1.0), ("8", -2.0)):
        for tolerance in (0.5, 0.1, 0.02):
            point = f"width ε={tolerance} C={constant}"
            logs[point] = size + rng.normal(size=BATCHES)
            estimates[point] = xr.Dataset({"log_excess": of_batch([], logs[point])})
            at[point] = {"part": "width", "constant": constant}
    lengths = {k: of_batch(["length"], np.full((BATCHES, 2), 0.5))
               for k in ("error_by_length", "over_bound")}  # fmt: skip
    estimates["lengths"], at["lengths"] = xr.Dataset(lengths), {"part": "lengths"}
    experiment = load_experiment("lottery_tickets")
    figure, effects = (experiment.module(name) for name in ("figure", "effects"))
    for name in ("curves", "needed"):
        monkeypatch.setattr(effects, name, lambda _results: {})
    found = figure.numbers(made("lottery_tickets", estimates, at))
    most = {
        name: max(own.mean() for point, own in logs.items() if point.endswith(f"C={constant}"))
        for name, constant in (("narrow", "1/ln2"), ("wide", "8"))
    }
    expected = {"rate": 0.3, "law": np.log(2) / 2, "size": 0.6, "speed": 0.07,
                "narrow": np.e ** most["narrow"], "wide": np.e ** most["wide"]}  # fmt: skip
    assert found == {name: pytest.approx(value) for name, value in expected.items()}


def test_learned_temperature_says_the_largest_loss_of_the_matched_rules():
    """``max`` over streams of the matched rule's error over the best there is, less 1.

    Errors differ from batch to batch by a factor alone, so that ratios have no error.
    """
    rng, lengths = np.random.default_rng(9), [1, 4, 16]
    last = {
        "smooth": {"1.5-entmax": 1.05, "sparsemax": 1.3, "softmax": 6.0},
        "rough": {"1.5-entmax": 1.6, "sparsemax": 1.15, "softmax": 4.0},
    }
    estimates, predictions, spreads = {}, {}, []
    for stream, rules in last.items():
        common = rng.uniform(1, 2, (BATCHES, 1))
        for rule, loss in rules.items():
            kept, logs = common * [1.0, 1.2, loss], rng.normal(size=BATCHES)
            tuned = np.tile(common[:, :, None], (1, 3, 3)) * [1.4, 1.0, 1.4]
            estimates[f"{stream}, {rule}"] = xr.Dataset(
                {"kept": of_batch(["length"], kept), "tuned": of_batch(["length", "place"], tuned),
                 "log_temperature": of_batch([], logs)},
                {"length": lengths},
            )  # fmt: skip
            spreads.append(np.sqrt(sum((logs - sum(logs) / BATCHES) ** 2) / (BATCHES - 1)))
    gaps = {"smooth, softmax": 0.8, "rough, softmax": 1.1}
    for point, factor in gaps.items():
        expected = estimates[point]["kept"].values[:, -1] * factor
        terms = {"each_mse": expected, "each_squared_bias": 0.2 * expected}
        predictions[point] = xr.Dataset({k: ("seed", values) for k, values in terms.items()})
    settings = {"best": {stream: dict.fromkeys(rules) for stream, rules in last.items()}}
    at = {point: {"part": "learned"} for point in estimates}
    results = made("learned_temperature", estimates, at, predictions, settings)
    found = load_experiment("learned_temperature").module("figure").numbers(results)
    assert found["matched"] == pytest.approx(0.15)
    assert found["gap"] == pytest.approx(1 / 0.8 - 1)
    assert found["spread"] == pytest.approx(max(spreads))
    for stream, rules in last.items():
        assert found["factors"][stream] == {k: pytest.approx(v) for k, v in rules.items()}
