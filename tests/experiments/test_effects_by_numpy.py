"""Confirmatory effects of drawn problems by plain NumPy: only what was drawn is the experiment's.

A test compares effects of two problems, with random numbers of its own, at five joint standard
errors: a false alarm comes once in 20,000 runs. `unification` has its own test.
"""

import numpy as np
import pytest
from scipy.special import softmax

from tests.experiments.drawing import assert_effect, fall, two_problems
from tests.experiments.test_kq_svd import best_product


def main_axes(rows, rank):
    """Projection on the leading axes of some rows."""
    axes = np.linalg.eigh(rows.T @ rows)[1][:, -rank:]
    return axes @ axes.T


def compressed(problem, rng):
    """Errors (centred, method) of scores and of outputs, and the share of the printed bound."""
    fields, d, n = problem.drawn, problem.drawn["width"], round(problem.drawn["calibration"])
    rank = round(d * fields["rank_share"])
    keys = rng.normal(size=(n, d)) @ problem.of_keys + problem.mean
    queries = np.vstack([rng.normal(size=(n, d)) @ head for head in problem.of_queries])
    tokens, asked = rng.normal(size=(fields["tokens"], 2 * d)), rng.normal(size=(32, d))
    new, values = tokens[:, :d] @ problem.of_keys + problem.mean, tokens @ problem.of_values
    many = rng.normal(size=(500, d)) @ problem.of_keys + problem.mean
    scores, outputs = np.zeros((2, 3)), np.zeros((2, 3))
    shares = []
    for centred in (0, 1):
        seen = keys - centred * keys.mean(0)
        both = np.vstack([seen, queries])
        maps = best_product(seen, queries, rank), main_axes(seen, rank), main_axes(both, rank)
        for method, kept in enumerate(maps):
            for head in problem.of_queries:
                missed = (many - centred * many.mean(0)) @ (kept - np.eye(d)) @ head.T
                scores[centred, method] += (missed**2).sum(1).mean()
                exact = asked @ head @ new.T / problem.temperature
                rough = asked @ head @ (new @ kept).T / problem.temperature
                moved = (softmax(rough, axis=1) - softmax(exact, axis=1)) @ values
                outputs[centred, method] += (moved**2).sum()
                if not centred and not method:
                    size = np.linalg.norm(rough - exact, 2) * np.linalg.norm(values, 2)
                    shares.append(np.linalg.norm(moved, 2) / size)
    return scores, outputs, max(shares)


def test_kq_svd(tmp_path):
    """Calibration on drawn tokens, the singular vectors of all scores, and their mean over keys."""
    law = {"width": 8, "heads": 2, "tokens": 64, "rank_share": 0.25, "key_mean": 3}
    law |= {"calibration": 100, "score_sd": 2.0}
    problems, _, effects = two_problems(tmp_path, "kq_svd", 20, 10, **law)
    rng = np.random.default_rng(1)
    for number, problem in enumerate(problems):
        drawn = [compressed(problem, rng) for _ in range(100)]
        scores, outputs, shares = map(np.array, zip(*drawn, strict=True))
        for centred, name in enumerate(("", ", centred")):
            kq, *rivals = outputs[:, centred].T
            for pair, rival in enumerate(rivals):
                assert_effect(effects[f"outputs{name}"], number, fall(kq, rival), pair)
            kq, rival, _ = scores[:, centred].T
            assert_effect(effects[f"scores{name}"], number, fall(kq, rival))
        assert_effect(effects["bound"], number, (1 - shares.mean(), shares.std() / 10))


def deep(problem, rng, layers, normed):
    """Tokens after layers of plain attention and with memory, on one draw, and keys by layer."""
    fields, d = problem.drawn, problem.drawn["d"]
    start, drawn, ends, keys = rng.normal(size=(fields["n"], d)), [], [], []
    for layer in range(layers):
        if layer == 0 or fields["weights"] == "independent":
            form, value = rng.normal(size=(2, d, d))
            if fields["matrix"] == "semidefinite":
                form = form @ form.T / (2 * d) ** 0.5
        drawn.append((fields["score_scale"] * form / d, fields["value_scale"] * value / d**0.5))
    for memory in (0, fields["memory"]):
        x, hidden = start, 0
        for layer, (form, value) in enumerate(drawn):
            copied = layer == 0 and fields["start"] == "copy"
            hidden = memory * hidden + (1 if copied else 1 - memory) * x @ form @ x.T
            weights = softmax(hidden, axis=1)
            moved = weights @ x @ value
            x = fields["skip"] * x + (1 - fields["skip"]) * moved if normed else moved
            if normed:
                x = x / np.sqrt((x**2).mean(1, keepdims=True))
            keys.append(1 / (weights**2).sum(1).mean())
        ends.append(x)
    return *ends, np.reshape(keys, (2, layers))


def log_residual(x):
    return np.log(np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x))


def mean_cosine(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit @ unit.T)[~np.eye(len(x), dtype=bool)].mean()


@pytest.mark.parametrize(
    ("start", "matrix", "weights"),
    [
        ("zero", "gaussian", "tied"),
        ("zero", "semidefinite", "independent"),
        ("copy", "semidefinite", "tied"),
    ],
)
def test_hidden_scores(tmp_path, start, matrix, weights):
    """Stacks of whole token matrices, one by one, without the split into mean and residual."""
    law = {"n": 8, "d": 16, "depth": 3, "deep": 12}
    law |= {"start": start, "matrix": matrix, "weights": weights}
    law |= {"skip": 0.5, "memory": 0.8, "score_scale": 2.0}
    problems, simulated, effects = two_problems(tmp_path, "hidden_scores", 48, 16, **law)
    rng = np.random.default_rng(2)
    for number, problem in enumerate(problems):
        changes, keys = [], []
        for _ in range(300):
            plain, memory, _ = deep(problem, rng, 3, False)
            before, after, attended = deep(problem, rng, 12, True)
            residual = log_residual(memory) - log_residual(plain)
            changes.append((residual, mean_cosine(before) - mean_cosine(after)))
            keys.append(attended)
        attended = np.array(keys)
        share, spread = fall(*attended[:, ::-1, 2].T)
        assert_effect(effects["keys"], number, (-share, spread))
        if number == 0:
            first = float(simulated["first_keys"].mean())
            assert attended[:, 0, 0].mean() / 8 == pytest.approx(first, rel=0.05)
        mean, error = np.mean(changes, axis=0), np.std(changes, axis=0) / 300**0.5
        for place, name in enumerate(("residual", "cosine")):
            assert_effect(effects[name], number, (mean[place], error[place]))


def rotation(rng, d):
    """A random orthogonal matrix, uniform on all."""
    turned, triangle = np.linalg.qr(rng.normal(size=(d, d)))
    return turned * np.sign(np.diag(triangle))


def few_levels(problem, rng):
    """Squared errors of the scores with the first 1, 2 and 3 of six levels, token by token."""
    fields, count = problem.drawn, int(np.log2(problem.drawn["tokens"]))
    tokens = rng.normal(size=(fields["tokens"], fields["width"]))
    scores = []
    for level in range(count):
        sizes = fields["decay"] ** np.arange(fields["width"])
        form = rotation(rng, len(sizes)) * sizes @ rotation(rng, len(sizes))
        repeated = np.repeat(tokens, 2**level, axis=0)
        scores.append(repeated @ form @ repeated.T)
        padded = np.vstack([np.zeros((len(problem.taps), fields["width"])), tokens])
        first = np.arange(0, len(tokens), 2) + len(problem.taps)
        tokens = sum(tap * padded[first - k] for k, tap in enumerate(problem.taps))
    target = np.tensordot(problem.spectrum, scores, 1)
    errors = []
    for kept in range(1, count // 2 + 1):
        weights = problem.spectrum[:kept] / problem.spectrum[:kept].sum()
        errors.append(np.sum((target - np.tensordot(weights, scores[:kept], 1)) ** 2))
    return errors


def bend(errors):
    """What a line in L leaves of the spread of the log error."""
    log, level = np.log(errors), np.arange(len(errors))
    return np.std(log - np.polyval(np.polyfit(level, log, 1), level)) / np.std(log)


def block_rests(problem, rng):
    """What the Gaussian term, and all cumulants up to 4, leave of many blocks' log means."""
    unit = {
        "normal": rng.normal,
        "uniform": lambda size: rng.uniform(-(3**0.5), 3**0.5, size),
        "exponential": lambda size: rng.exponential(size=size),
    }[problem.drawn["keys"]]
    scores = problem.drawn["spread"] * unit(size=(problem.drawn["block"], 20_000))
    mean, square = scores.mean(0), scores.var(0)
    third, fourth = (((scores - mean) ** k).mean(0) for k in (3, 4))
    gauss = np.log(np.exp(scores).mean(0)) - mean - square / 2
    return abs(np.array([gauss, gauss - third / 6 - (fourth - 3 * square**2) / 24]))


@pytest.mark.parametrize(
    ("target", "keys"),
    [("geometric", "uniform"), ("power law", "exponential"), ("any order", "normal")],
)
def test_hierarchy(tmp_path, target, keys):
    """Matrices of all pairs of tokens on six levels, and blocks one by one."""
    law = {
        "tokens": 64,
        "width": 4,
        "target": target,
        "keys": keys,
        "spread": 0.5,
        "block": 8,
    }
    problems, _, effects = two_problems(tmp_path, "hierarchy", 16, 8, **law)
    rng = np.random.default_rng(3)
    for number, problem in enumerate(problems):
        errors = np.array([few_levels(problem, rng) for _ in range(200)])
        parts = [bend(part.mean(0)) for part in np.split(errors, 20)]
        expected = 0.1 - bend(errors.mean(0)), np.std(parts) / 20**0.5
        assert_effect(effects["decay"], number, expected)
        gauss, fourth = block_rests(problem, rng)
        assert_effect(effects["correction"], number, fall(fourth, gauss))
