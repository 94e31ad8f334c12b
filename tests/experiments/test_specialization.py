"""The experiment `specialization`: theory's parts, verdicts that can go both ways, how it fits."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.specialization.courses import courses
from sims.learning import STREAMS, Stream
from sims.problem import FRAMES, Heads
from sims.study.experiment import load_experiment
from sims.study.judging import effects_of
from tests.experiments.helpers import results_of, verdicts
from tests.experiments.runs import both_roads

PARTS = ("squared_bias", "own", "cross")


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("specialization")


def made(experiment, gain, seeds=64):
    """Results in which the error falls by ``gain`` (bias, own, cross) and diversity rises by 0.5.

    Heads that are trained separately end with 0.2 more covariance and an index of 0.3.
    """
    rng = np.random.default_rng(0)
    estimates, predictions = {}, {}
    for stream in experiment.settings["streams"]:
        for i, variant in enumerate(experiment.settings["variants"]):
            if stream not in experiment.settings["only_on"].get(variant, [stream]):
                continue
            apart = "separate" in variant
            wobble = 1 + 1e-3 * rng.normal(size=seeds)
            parts = dict(zip(PARTS, gain, strict=True))
            theory = {f"{p}_before": ("seed", np.ones(seeds)) for p in parts}
            theory |= {
                f"{p}_after": ("seed", 1 - g * (1 + 1e-3 * rng.normal(size=seeds)))
                for p, g in parts.items()
            }
            theory["cross_after"] = ("seed", theory["cross_after"][1] + 0.2 * apart)
            # A head alone gains what its bias and its own variance do.
            theory |= {
                "heads_error_before": ("seed", 2 * np.ones(seeds)),
                "heads_error_after": ("seed", 2 - (gain[0] + gain[1]) * wobble),
            }
            theory |= {f"n_eff_{s}": ("seed", np.full(seeds, 50.0)) for s in ("before", "after")}
            after = np.sum([theory[f"{p}_after"][1] for p in parts], axis=0)
            name = f"{stream}, {variant}"
            estimates[name] = xr.Dataset(
                {
                    "mse_before": ("batch", 3 * wobble),
                    "mse_after": ("batch", (after - 0.01 * i) * wobble[::-1]),
                    **{
                        f"{part}_{state}": ("batch", theory[f"{part}_{state}"][1] * wobble[::-1])
                        for part in ("own", "cross", "heads_error")
                        for state in ("before", "after")
                    },
                    "hdi": (("batch", "step"), np.full((seeds, 10), 0.1)),
                    "hdi_after": ("batch", 0.3 * wobble if apart else 0.6 * wobble + 0.05 * i),
                },
                attrs={"replicates": 10 * seeds},
            )
            predictions[name] = xr.Dataset(theory)
    return results_of(experiment, estimates, predictions)


def regimes(experiment, results):
    """Regime to the verdict."""
    return {regime: verdict for (_, regime), verdict in verdicts(experiment, results).items()}


def changed(results, change):
    """Results with every simulated dataset replaced by what ``change(name, data)`` assigns."""
    return replace(
        results,
        estimates={name: d.assign(change(name, d)) for name, d in results.estimates.items()},
    )


def test_joint_training_has_to_do_more_than_separate_training(experiment):
    """Rows of either start are refuted where its two variants end alike, and only these."""
    results = made(experiment, (0.05, 0.02, 0.3))
    for start, words in (
        ("aligned", ("plain", "separate")),
        ("random", ("random", "random separate")),
    ):
        same = {
            f"{stream}, {words[1]}": results.estimates[f"{stream}, {words[0]}"]
            for stream in experiment.settings["streams"]
        }
        found = regimes(experiment, replace(results, estimates=results.estimates | same))
        rows = {regime for regime in found if "joint training" in regime}
        assert len(rows) == 20
        assert {r for r in rows if found[r] == "refuted"} == {
            r for r in rows if f"{start} start" in r
        }
        assert {found[r] for r in rows} == {"refuted", "supported"}


def test_joint_less_separate_training_by_hand(experiment):
    """Of H = 4 heads whose errors have one square v and one product c: the correlation is c/v."""
    results = made(experiment, (0.05, 0.02, 0.3))
    ends = {  # index, v, c
        "plain": (0.8, 2.0, 0.5),
        "separate": (0.1, 1.6, 1.2),
        "random": (0.9, 3.0, 0.9),
        "random separate": (0.7, 1.5, 0.9),
    }

    def change(name, data):
        index, v, c = ends.get(name.split(", ")[1], (0.5, 1.0, 0.5))
        errors = np.full((4, 4), c) + (v - c) * np.eye(4)
        numbers = {
            "hdi": index,
            "mse": np.full(4, 0.25) @ errors @ np.full(4, 0.25),
            "heads_error": v,
        }
        return {f"{k}_after": ("batch", np.full(64, x)) for k, x in numbers.items()}

    families = effects_of(experiment, changed(results, change))
    expected = {
        "joint training parts heads further": (0.8 - 0.1, 0.9 - 0.7),
        "joint training decorrelates errors further": (1.2 / 1.6 - 0.5 / 2, 0.9 / 1.5 - 0.9 / 3),
        "joint training lowers the error further": (1 - 0.875 / 1.3, 1 - 1.425 / 1.05),
    }
    for family, (aligned, random) in expected.items():
        own = families[family]
        assert [e.at["stream"] for e in own] == 2 * experiment.settings["streams"]
        found = {
            start: [e.value for e in own if e.at["start"] == start]
            for start in ("aligned", "random")
        }
        assert found["aligned"] == pytest.approx([aligned] * 4, rel=1e-9), family
        assert found["random"] == pytest.approx([random] * 4, rel=1e-9), family
    first = families["joint training lowers the error further"][0]
    assert first.points == ("noise, plain", "noise, separate")


def test_variants_differ_in_objective_start_and_noise_alone(experiment):
    """What each control learns from and where it starts; all else is that of plain learning."""
    every = courses(experiment.settings)
    of = {name: every[f"additive, {name}"] for name in experiment.settings["variants"]}
    assert {(c.objective, c.angle) for c in (of["plain"], of["penalty"], of["weights"])} == {
        ("joint", 10)
    }
    assert of["separate"] == replace(of["plain"], objective="separate")
    assert of["random"] == replace(of["plain"], angle=None)
    assert of["random separate"] == replace(of["plain"], angle=None, objective="separate")
    assert of["noisy"] == replace(of["plain"], noise_sd=5.0)
    assert {c.noise_sd for name, c in every.items() if "noisy" not in name} == {0.5}
    some = {"noise, noisy", "noise, weights", "single, weights", "isotropic, weights"}
    assert len(every) == 4 * 7 - len(some)
    assert not some & set(every)


def test_roads_are_compared_where_there_is_variance(experiment):
    """The share of the variance in the error by theory: 2 of 3 at the start; then by hand."""
    results = made(experiment, (0.5, 0.0, 0.2))
    gaps = effects_of(experiment, results)["error by both roads"]
    before, after = gaps[:2]
    assert before.at["variance_share"] == pytest.approx(2 / 3)
    assert after.at["variance_share"] == pytest.approx(1.8 / 2.3, rel=2e-3)


def test_effects_rest_on_learning_seeds(experiment):
    families = effects_of(experiment, made(experiment, (0.05, 0.02, 0.3)))
    every = [effect for family in families.values() for effect in family]
    assert {(e.batches, e.replicates, e.unit) for e in every} == {(64, 64, "learning seeds")}
    # Theory has as many seeds as the file says: more batches of the simulation do not help there.
    assert {bool(e.points) for e in families["error by both roads"]} == {False}
    assert families["diversity rises"][0].points == ("noise, plain",)


class OneTarget(Stream):
    """Whose targets are all the same, so that what varies between them is the keys."""

    def target(self, rotation, key):
        return super().target(rotation, jax.random.key(0))


@pytest.mark.theory
def test_variances_over_targets_and_two_draws(experiment):
    """n = 1: a head is the label of its key, with the variance of m. 5 standard errors of 400 s².

    Each s² is of two draws, and has a relative standard deviation of √2 where m is normal.
    """
    stream, key = OneTarget(np.ones((4, 3)), 1.0), jax.random.split(jax.random.key(0), 3)
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=50), "gaussian", 0.7)
    own = {
        targets: float(
            experiment.module("simulate").held_out(
                stream,
                jnp.eye(3),
                heads,
                jnp.array([0.5, 0.5]),
                key,
                1,
                0.0,
                targets=targets,
                queries=1,
                replicates=2,
            )[1]
        )
        for targets in (1, 400)
    }
    x = np.random.default_rng(0).normal(size=(100_000, 3))
    variance = np.asarray(stream.target(jnp.eye(3), key[0])(jnp.asarray(x))).var()
    assert own[400] == pytest.approx(variance / 2, rel=5 * np.sqrt(2 / 400))
    assert own[400] != pytest.approx(own[1], rel=1e-6)


@pytest.mark.theory
def test_parts_by_plain_numpy(experiment):
    """Theory's decomposition and the simulated error, for weights of sum ≠ 1, in 2000 draws.

    At n = 400 (mean n_eff about 150) what first order leaves out is within 4%; the simulated error
    of the same frames, with labels integrated out, within 5 standard errors of plain NumPy's
    (its spread is at most that with labels); its own and cross parts within 20%.
    """
    rng = np.random.default_rng(0)
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=50), "gaussian", 0.7)
    weights, noise_sd, n = jnp.array([0.9, 0.4]), 0.5, 400
    stream, rotation = STREAMS["additive"](3), jnp.eye(3)
    key = jax.random.split(jax.random.key(0), 3)
    parts = np.asarray(
        experiment.module("predict").decomposition(
            stream, rotation, heads, weights, key[:2], float(n), noise_sd, targets=1, queries=4
        )
    )
    at = np.asarray(jax.random.normal(jax.random.fold_in(key[1], 0), (4, 3)))
    target = stream.target(rotation, jax.random.fold_in(key[0], 0))
    m_at = np.asarray(target(jnp.asarray(at)))
    x = rng.normal(size=(2000, n, 3))
    m = np.asarray(target(jnp.asarray(x)))
    estimates = []
    for q in at:
        logs = -(((x - q) @ np.asarray(heads.frames)[:, :, 0].T) ** 2) / (2 * 0.7**2)
        w = np.exp(logs)
        w /= w.sum(1, keepdims=True)
        y = m + noise_sd * rng.normal(size=m.shape)
        estimates.append(np.einsum("rnh,rn->rh", w, y))
    f = np.array(estimates)
    bias = np.mean(((f.mean(1) @ np.asarray(weights)) - m_at) ** 2)
    covariance = np.mean([np.cov(e.T) for e in f], axis=0)
    whole = weights @ covariance @ weights
    own = weights**2 @ np.diag(covariance)
    np.testing.assert_allclose(parts[0], bias, rtol=0.06)
    np.testing.assert_allclose(parts[1:3], [own, whole - own], rtol=0.1)
    alone = ((f - m_at[:, None, None]) ** 2).mean((0, 1))
    np.testing.assert_allclose(parts[3], weights @ alone, rtol=0.06)
    error = ((f @ np.asarray(weights) - m_at[:, None]) ** 2).mean(0)
    simulated = np.asarray(
        experiment.module("simulate").held_out(
            stream,
            rotation,
            heads,
            weights,
            key,
            n,
            noise_sd,
            targets=1,
            queries=4,
            replicates=500,
        )
    )
    assert abs(simulated[0] - error.mean()) < 5 * error.std() * np.sqrt(1 / 2000 + 1 / 500)
    # Sample variances of 500 draws: 6 % at one query, less averaged over four.
    np.testing.assert_allclose(simulated[1:3], [own, whole - own], rtol=0.2)
    np.testing.assert_allclose(simulated[3], weights @ alone, rtol=0.06)


def test_roads_learn_the_same_heads():
    """Names and seeds agree at a tiny size, and both roads see the frames learned."""
    whole = load_experiment("specialization", "smoke")
    settings = {
        "streams": ["single", "additive"],
        "variants": {
            name: whole.settings["variants"][name] for name in ("plain", "random separate")
        },
        "learning": {"steps": 3, "tasks": 1, "rate": 0.05},
        "held_out": {"targets": 1, "queries": 4},
        "n": 24,
    }
    smoke = whole.spec.at("smoke").model_copy(update={"settings": settings})
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    small = replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))
    results = both_roads(small)
    assert results.points == [
        f"{stream}, {variant}"
        for stream in ("single", "additive")
        for variant in settings["variants"]
    ]
    for name, data in results.estimates.items():
        np.testing.assert_allclose(
            data["hdi_after"], results.predictions[name]["hdi_after"], rtol=1e-6
        )
        assert data.sizes["batch"] == 3
        if "plain" in name:
            np.testing.assert_allclose(data["hdi"][:, 0], np.sin(np.deg2rad(10)) ** 2, rtol=1e-6)
        else:
            assert (data["hdi"][:, 0] > 0.2).all()
        assert (np.abs(data["hdi_after"] - data["hdi"][:, 0]) > 1e-4).all()
    # Seeds are different, and another offset shares none.
    assert len(set(results.estimates["single, plain"]["hdi_after"].values)) == 3
    moved = both_roads(replace(small, seed_offset=1))
    ends = [r.estimates["single, plain"]["hdi_after"].values for r in (results, moved)]
    assert len(set(np.ravel(ends))) == 6


def test_every_target_has_queries_of_its_own(experiment):
    """Both roads: noise alone at one query a target, where it varies; n = 4000, within 2 %.

    Were they shared, three targets would have the variance of the first.
    """
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=50), "gaussian", 0.7)
    stream, key = STREAMS["noise"](3), jax.random.split(jax.random.key(1), 3)
    given = (stream, jnp.eye(3), heads, jnp.array([0.5, 0.5]))
    variances = {}
    for targets in (1, 3):
        theory = experiment.module("predict").decomposition(
            *given, key[:2], 4000.0, 0.5, targets=targets, queries=1
        )
        simulated = experiment.module("simulate").held_out(
            *given, key, 4000, 0.5, targets=targets, queries=1, replicates=4
        )
        np.testing.assert_allclose(simulated[1], theory[1], rtol=0.02)
        variances[targets] = float(theory[1])
    assert abs(variances[3] / variances[1] - 1) > 0.2
