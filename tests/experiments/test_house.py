"""The house law in plain NumPy: its problems' files alone, without code of the suite.

Errors of both methods of computing are compared within five joint Monte Carlo standard errors over
about 300 numbers: a false alarm once in 5,000 runs.
"""

import numpy as np
import pytest

from experiments.house import description, problems
from experiments.house import sets as places
from experiments.house.outcomes import falls_of, is_decided
from experiments.house.simulate import batch
from sims.montecarlo.draws import Draw
from sims.study.experiment import load_experiment
from sims.study.loading import load_study
from tests.cli.small import run

COUNT, ROUNDS, REPLICATES = 30, 16, 8
FAR = 5.0


def law_of_few_keys():
    """The house study with 64 keys, so that 30 problems take seconds."""
    experiment = load_experiment("house", "smoke")
    spec = experiment.spec.model_copy(update={"law": experiment.spec.law | {"keys": 64}})
    object.__setattr__(experiment, "spec", spec)
    return load_study(experiment)


@pytest.fixture(scope="module")
def drawn():
    """Problems at temperatures of a short pilot: near the best ones, which nothing here needs."""
    study = law_of_few_keys()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "PILOT", 4)
        return [study.draw(number) for number in range(COUNT)]


def keys_by_hand(rng, design, dimension, count):
    """Keys from a design as a file has it."""
    normal = rng.normal(size=(count, dimension))
    kind = design["kind"]
    if kind == "gaussian":
        return rng.multivariate_normal(np.zeros(dimension), design["covariance"], size=count)
    if kind == "student":
        nu = design["freedom"]
        root = np.linalg.cholesky(design["scale_matrix"])
        return normal @ root.T * np.sqrt(nu / rng.chisquare(nu, size=(count, 1)))
    if kind == "sphere":
        return design["radius"] * normal / np.linalg.norm(normal, axis=1, keepdims=True)
    if kind == "mixture":
        means = np.array(design["means"])
        root = np.linalg.cholesky(design["covariances"][0])
        return means[rng.integers(len(means), size=count)] + normal @ root.T
    rows = np.load(f"sims/problem/tables/{design['name']}.npy").astype(float)[:, :dimension]
    rows /= np.sqrt(rows.var(0).mean())
    return rows[rng.integers(int(0.75 * len(rows)), size=count)]


def target_by_hand(target, points):
    phases = points @ np.array(target["frequency"]).T + np.array(target["phase"])
    return np.cos(phases) @ np.array(target["amplitude"])


def errors_by_hand(spec, frames, key_frames, queries, keys, rotation):
    """Error of the ensemble and n_eff of the heads at each query, given the keys."""
    heads, values = spec["heads"], target_by_hand(spec["target"], keys)
    same = (keys[:, None] == keys[None]).all(2)
    mean, effective = 0.0, []
    for u, v, b in zip(frames, key_frames, heads["bandwidth"], strict=True):
        q, z = queries @ rotation @ u, keys @ rotation @ v
        if heads["kernel"] == "softmax":
            score = q @ z.T / b**2
        else:
            score = -((q[:, None] - z[None]) ** 2).sum(2) / (2 * b**2)
        weights = np.exp(score - score.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        effective.append(1 / ((weights @ same) * weights).sum(1))
        mean = mean + weights / len(frames)
    deviation = mean @ values - target_by_hand(spec["target"], queries)
    return deviation**2 + spec["noise_sd"] ** 2 * (mean**2).sum(1), np.mean(effective, axis=0)


def test_errors_in_both_readings_and_effective_keys_are_those_by_hand(drawn):
    """Of 30 problems at the common temperature, first rung and random set, and their change."""
    worst = []
    for number, problem in enumerate(drawn):
        file, rng = description.described(problem), np.random.default_rng([7, number])
        spec = file["problem"]
        sets = [file["sweep"]["list"][k] for k in (places.ALIGNED, places.HAAR)]
        draws = Draw.from_seed(3, (number,), 2)
        found = [batch(draws.draw(k), 2, problem) for k in range(ROUNDS)]
        error = np.stack([b["bias"] + b["variance"] for b in found])[..., 0]
        by_hand, effective = [], []
        for k in range(ROUNDS):
            queries = problem.queries(k)[:REPLICATES]
            turned = np.linalg.qr(rng.normal(size=(spec["dimension"],) * 2))[0]
            for _ in range(2):
                keys = keys_by_hand(rng, spec["design"], spec["dimension"], 64)
                rows = []
                for rotation in (np.eye(len(turned)), turned):
                    for one in sets:
                        u = np.array(one["heads.frames"]["frames"])
                        v = np.array(one.get("heads.key_frames", one["heads.frames"])["frames"])
                        rows.append(errors_by_hand(spec, u, v, queries, keys, rotation))
                by_hand.append([row[0].mean() for row in rows])
                effective.append(rows[1][1].mean())
        by_hand = np.array(by_hand).reshape(ROUNDS, 2, 2, 2).mean(1)
        simulated = error[:, :, [places.ALIGNED, places.HAAR]]
        joint = np.sqrt((by_hand.var(0, ddof=1) + simulated.var(0, ddof=1)) / ROUNDS)
        worst.append(np.abs(by_hand.mean(0) - simulated.mean(0)) / joint)
        keys = problem.keys[places.HAAR, places.COMMON].mean()
        assert np.mean(effective) == pytest.approx(keys, rel=0.25), number
    assert np.max(worst) < FAR


def test_what_is_solved_is_what_was_drawn(drawn):
    """Noise, rungs, maps of queries, and tuned temperatures, of every problem."""
    seen = set()
    for number, problem in enumerate(drawn):
        fields, rng = problem.fields, np.random.default_rng([8, number])
        file = description.described(problem)["problem"]
        keys = keys_by_hand(rng, file["design"], file["dimension"], 20_000)
        variance = target_by_hand(file["target"], keys).var()
        ratio = problem.noise_sd**2 / variance
        assert ratio == pytest.approx(fields["noise_ratio"], rel=0.2)
        overlaps = [
            np.linalg.norm(a.T @ b) ** 2
            for frames in problem.key_frames[:5]
            for k, a in enumerate(frames)
            for b in frames[:k]
        ]
        index = 1 - np.mean(np.reshape(overlaps, (5, -1)), axis=1) / fields["size"][2]
        assert index / index[-1] == pytest.approx(places.LADDER, abs=1e-3)
        same = np.array_equal(problem.query_frames, problem.key_frames)
        assert same != fields["apart"]
        if fields["apart"]:
            wrong = problems.draw_query_frames(
                problem.key_frames, fields["overlap"], fields["frames"]
            )
            assert not np.allclose(problem.query_frames, wrong)
        scale = problem.bandwidth / problem.bandwidth[:, :, :1]
        assert np.allclose(scale, scale[0, 0])
        assert (scale == 1).all() != fields["uneven"]
        if problem.fits:
            columns = np.concatenate([*problem.key_frames[places.ORTHOGONAL]], 1)
            assert np.allclose(columns.T @ columns, np.eye(columns.shape[1]))
        seen.add(problem.law.family)
    assert len(seen) >= 6


def test_falls_are_those_of_the_means_and_decided_ones_stop():
    rng = np.random.default_rng(1)
    rungs = np.array([1, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5])
    arrays = {}
    for name, level in {"bias": 0.6, "variance": 0.4, "half_error": 2.0}.items():
        noise = 1 + 1e-3 * rng.normal(size=(128, 2, 7, 2))
        arrays[name] = level * rungs[:, None] * noise
    arrays["half_error"] = arrays["half_error"] / rungs[:, None]
    arrays["head_variance"] = 1 + 1e-3 * rng.normal(size=(128, 2, 7, 2))
    error = (arrays["bias"] + arrays["variance"]).mean(0)[0, :, 1]
    falls = falls_of("hdi-monotone", arrays, 0, 1)
    assert np.allclose(falls.mean(0), 1 - error[1:5] / error[:4])
    again = [
        1 - np.divide(*(arrays["bias"] + arrays["variance"])[rows].mean(0)[0, [1, 0], 1])
        for rows in rng.integers(128, size=(400, 128))
    ]
    assert falls.std(0)[0] / 128**0.5 == pytest.approx(np.std(again), rel=0.2)
    assert is_decided(arrays, fits=True)
    arrays["variance"] = arrays["variance"] * (1 + 3 * rng.normal(size=(128, 2, 7, 2)))
    assert not is_decided(arrays, fits=True)


def test_a_problem_of_the_law_says_what_it_is(capsys):
    assert run("decompose", "house#0", "--dry") == 0
    assert "problem" in capsys.readouterr().out
