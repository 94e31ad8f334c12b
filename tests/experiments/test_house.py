"""The house law in plain NumPy: its problems' files alone, without code of the suite.

Errors of both methods are compared at the same queries, within five Monte Carlo standard errors of
32 rounds. Over 300 numbers, other seeds would give a false alarm less than once in 100 runs.
"""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chi2, f, kstest

from experiments.house import description, pilot, problems
from experiments.house import sets as places
from experiments.house.frames import draw_key_frames, draw_query_frames, draw_rotations
from experiments.house.simulate import batch
from experiments.house.study import House
from sims.base.estimates import mcse
from sims.montecarlo.draws import Draw
from sims.study.running import Run
from sims.study.study import Fields
from tests.cli.small import run
from tests.experiments.drawing import short_house

COUNT, ROUNDS, FAR = 30, 32, 5.0
CELLS = ((places.ALIGNED, 0), (places.ALIGNED, 1), (places.HAAR, 0), (places.HALF_HAAR, 1))
"""Set and temperature whose errors are compared."""


def law_of_few_keys():
    """The house study with 64 keys, so that 30 problems take seconds."""
    experiment = Run.load("house", "smoke")
    content = experiment.study.declared.content
    few = House(content["law"] | {"keys": 64}, content["questions"])
    return few.opened(experiment.settings, experiment.simulation)


@pytest.fixture(scope="module")
def drawn():
    """Problems at the temperatures of a short pilot."""
    study = law_of_few_keys()
    with short_house():
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


def weights_by_hand(spec, heads, queries, keys):
    """Mean weights of the heads as drawn at each query."""
    b, u, v = heads
    found = []
    for width, left, right in zip(b, u, v, strict=True):
        q, z = queries @ left, keys @ right
        score = q @ z.T
        if spec["heads"]["kernel"] != "softmax":
            score = -((q[:, None] - z[None]) ** 2).sum(2) / 2
        found.append(softmax(score / width**2, axis=1))
    return np.mean(found, axis=0)


def errors_by_hand(spec, heads, queries, keys, rotation):
    """Error of the ensemble and n_eff of the heads at each query, given the keys."""
    values = target_by_hand(spec["target"], keys)
    same = (keys[:, None] == keys[None]).all(2)
    mean, effective = 0.0, []
    for b, u, v in zip(*heads, strict=True):
        q, z = queries @ rotation @ u, keys @ rotation @ v
        if spec["heads"]["kernel"] == "softmax":
            score = q @ z.T / b**2
        else:
            score = -((q[:, None] - z[None]) ** 2).sum(2) / (2 * b**2)
        weights = softmax(score, axis=1)
        effective.append(1 / ((weights @ same) * weights).sum(1))
        mean = mean + weights / len(heads[0])
    deviation = mean @ values - target_by_hand(spec["target"], queries)
    return deviation**2 + spec["noise_sd"] ** 2 * (mean**2).sum(1), np.mean(effective, axis=0)


def heads_in_file(file, problem, reading, place, temperature):
    """Bandwidths and frames of a set of heads, frames by the file's sweep; of a half, its own."""
    half = place == places.HALF_HAAR
    one = file["sweep"]["list"][places.HAAR if half else place]
    frames = one["heads.frames"]
    both = [np.array(each["frames"]) for each in (frames, one.get("heads.key_frames", frames))]
    bandwidth = problem.bandwidth[place, temperature]
    if reading == places.EQUAL:
        both[0] = both[1]
        bandwidth = problem.equal_bandwidth[place, temperature]
    count = len(bandwidth) // (1 + half)
    return bandwidth[:count], *(array[:count] for array in both)


def test_errors_in_both_readings_and_effective_keys_are_those_by_hand(drawn):
    """Of both ends and of a half, and their differences."""
    worst = []
    for number, problem in enumerate(drawn):
        draws, rng = Draw.from_seed(3, (number,), 2), np.random.default_rng([7, number])
        file = description.described(problem)
        spec = file["problem"]
        gaps, effective = [], []
        for k in range(ROUNDS):
            with short_house():
                queries, result = problem.queries(k), batch(draws.draw(k), 2, problem)
            error = (result["bias"] + result["variance"])[:, *np.transpose(CELLS)]
            turned = np.linalg.qr(rng.normal(size=(spec["dimension"],) * 2))[0]
            keys = keys_by_hand(rng, spec["design"], spec["dimension"], 64)
            for reading, rotation in enumerate((np.eye(len(turned)), turned)):
                if reading == places.EQUAL and not problem.equal:
                    assert np.isnan(error[reading]).all()
                    continue
                sets = [heads_in_file(file, problem, reading, *cell) for cell in CELLS]
                rows = [errors_by_hand(spec, one, queries, keys, rotation) for one in sets]
                gap = error[reading] - [row.mean() for row, _ in rows]
                gaps += [*gap, *np.diff(gap)]
                if reading == places.DRAWN:
                    effective.append(rows[2][1].mean())
        heads = heads_in_file(file, problem, places.DRAWN, *CELLS[2])
        assert np.allclose(spec["heads"]["bandwidth"], heads[0])
        gaps = np.reshape(gaps, (ROUNDS, -1))
        worst.append(np.max(np.abs(gaps.mean(0)) / mcse(gaps)))
        assert np.mean(effective) == pytest.approx(problem.keys.mean(), rel=0.25), number
    assert np.max(worst) < FAR
    assert sum(problem.equal for problem in drawn) > COUNT / 2


def pilot_of(problem):
    """The pilot of a problem, whose draws it shares with the suite."""
    fields = problem.fields
    facts = problem.law, problem.target, problem.mean, problem.noise_sd, problem.n
    return pilot.Pilot(*facts, fields["kernel"], fields["pilot"])


def errors_on_the_pilot(problem, reading, place, scale):
    """Errors of a set by hand, on each of the pilot's batches, at 13 bandwidths over a scale."""
    spec, seed = description.described(problem)["problem"], problem.fields["pilot"]
    queries_of_set, keys_of_set = problem.query_frames[place], problem.key_frames[place]
    if reading == places.EQUAL:
        queries_of_set = keys_of_set
    rows = []
    for number in range(6):
        rotations = np.eye(problem.law.dimension)[None]
        if reading == places.EQUAL:
            rng = np.random.default_rng([seed, 2, number])
            rotations = draw_rotations(rng, 4, problem.law.dimension)[:, 0, 0]
        with short_house():
            (points, times), queries = pilot_of(problem).draw(number)
        keys = np.repeat(points[0], times[0].astype(int), axis=0)
        groups = queries.reshape(len(rotations), -1, queries.shape[1])
        for level in 2.0 ** np.arange(-3.5, 2.6, 0.5):
            heads = level * scale, queries_of_set, keys_of_set
            found = [
                errors_by_hand(spec, heads, group, keys, rotation)[0]
                for group, rotation in zip(groups, rotations, strict=True)
            ]
            rows.append(np.mean(found))
    return np.reshape(rows, (6, 13))


def least_by_hand(errors):
    """The bandwidth, over a scale, of least error: vertex of the parabola through three points."""
    place = int(np.argmin(errors[:4].mean(0)))
    if 0 < place < errors.shape[1] - 1:
        a, b, _ = np.polyfit([-1, 0, 1], errors.mean(0)[place - 1 : place + 2], 2)
        near = errors.mean(0)[place - 1 : place + 2]
        place += np.clip(-b / (2 * a), -1, 1) if a > 0 else np.sign(near[0] - near[2])
    return 2 ** (-3.5 + place / 2)


def test_temperatures_are_those_of_least_error_on_the_draws_of_the_pilot(drawn):
    """As drawn of four sets, in problems of three kinds; equally good those of both ends."""
    for kind in ("shifted", "uneven", "apart"):
        problem = next(each for each in drawn if each.fields[kind] and each.equal)
        fields = problem.fields
        width = fields["size"][2] ** 0.5 * np.ones(problem.heads)
        scale = width
        if fields["uneven"]:
            normal = np.random.default_rng(fields["sharpness"]).normal(size=problem.heads)
            scale = width * np.exp(0.5 * normal)
        common = least_by_hand(errors_on_the_pilot(problem, places.DRAWN, places.HAAR, scale))
        shift = fields["shift"] if fields["shifted"] else 1.0
        for place in (places.HAAR, places.ALIGNED, places.ORTHOGONAL, places.THIRD):
            least = least_by_hand(errors_on_the_pilot(problem, places.DRAWN, place, scale))
            expected = np.outer([common, least], shift * scale)
            np.testing.assert_allclose(problem.bandwidth[place], expected, rtol=1e-6)
        ends = [
            least_by_hand(errors_on_the_pilot(problem, places.EQUAL, place, width))
            for place in (places.HAAR, places.ALIGNED)
        ]
        for bandwidth in problem.equal_bandwidth[: places.HALF_ALIGNED]:
            np.testing.assert_allclose(bandwidth, np.outer(ends, width), rtol=1e-6)
        half = least_by_hand(errors_on_the_pilot(problem, places.EQUAL, places.HALF_HAAR, width))
        np.testing.assert_allclose(
            problem.equal_bandwidth[places.HALF_HAAR, 1], half * width, rtol=1e-6
        )


def test_baselines_and_the_gain_are_those_by_hand(drawn):
    """Ridge by its normal equations, one head with all of x, and the gain of least error."""
    for problem in drawn[:6]:
        spec, ridge, full, gained = description.described(problem)["problem"], [], [], []
        dimension, noise = spec["dimension"], spec["noise_sd"] ** 2
        whole = [np.eye(dimension)[None]] * 2
        with short_house():
            draws = [pilot_of(problem).draw(number) for number in range(6)]
        for number, ((points, times), queries) in enumerate(draws):
            keys = np.repeat(points[0], times[0].astype(int), axis=0)
            inputs, asked = (np.column_stack([np.ones(len(x)), x]) for x in (keys, queries))
            truth = target_by_hand(spec["target"], queries)
            values = target_by_hand(spec["target"], keys)
            for level in 4.0 ** np.arange(-6, 7):
                penalty = level * 64 * np.diag([0.0] + [1.0] * dimension)
                weights = asked @ np.linalg.solve(inputs.T @ inputs + penalty, inputs.T)
                error = (weights @ values - truth) ** 2 + noise * (weights**2).sum(1)
                ridge.append(error.mean())
            for level in 2.0 ** np.arange(-3.5, 2.6, 0.5):
                head = [level * dimension**0.5], *whole
                full.append(errors_by_hand(spec, head, queries, keys, np.eye(dimension))[0].mean())
            if number < 4:
                frames = problem.query_frames[places.HAAR], problem.key_frames[places.HAAR]
                heads = problem.bandwidth[places.HAAR, 1], *frames
                for gain in problem.gain[places.HAAR] + np.array([-0.02, 0, 0.02]):
                    gained.append(gained_by_hand(problem, spec, heads, queries, keys, gain))
        errors = [np.reshape(rows, (6, -1)).mean(0).min() for rows in (ridge, full)]
        assert errors[0] / errors[1] == pytest.approx(problem.ridge / problem.full_head, rel=1e-6)
        first = errors[0] / problem.ridge
        assert 1 - first / problem.variance == pytest.approx(problem.skill, abs=1e-9)
        low, least, high = np.reshape(gained, (4, 3)).mean(0)
        assert least < min(low, high)
        assert low == pytest.approx(high, rel=1e-6)


def gained_by_hand(problem, spec, heads, queries, keys, gain):
    """Error of the average with a gain about the mean of the target."""
    plain = errors_by_hand(spec, heads, queries, keys, np.eye(len(queries[0])))[0]
    silent = errors_by_hand(spec | {"noise_sd": 0.0}, heads, queries, keys, np.eye(len(queries[0])))
    weights = weights_by_hand(spec, heads, queries, keys)
    signal = weights @ target_by_hand(spec["target"], keys)
    truth = target_by_hand(spec["target"], queries)
    shrunk = problem.mean + gain * (signal - problem.mean)
    return ((shrunk - truth) ** 2 + gain**2 * (plain - silent[0])).mean()


def test_draws_with_an_end_or_little_skill_are_rejected(drawn, monkeypatch):
    """By the set that selects draws alone: another one has an inner minimum and skill."""
    fields = Fields(drawn[0].fields, 0, 0, 0)
    for skill, inside, kept in (0.03, True, True), (0.01, True, False), (0.5, False, False):
        error = np.full(5, 0.5 * drawn[0].variance)
        error[0] = (1 - skill) * drawn[0].variance
        tuned = pilot.Tuned(np.ones(5), np.arange(5) > 0 if not inside else np.ones(5, bool), error)
        monkeypatch.setattr(pilot.Pilot, "tuned", lambda *_, tuned=tuned, **__: tuned)
        with short_house():
            assert (problems.draw_problem(fields) is not None) == kept


def test_problems_without_skill_or_an_inner_minimum_leave_equally_good(drawn, monkeypatch):
    frames, variance = drawn[0].key_frames, drawn[0].variance
    for skill, inside, kept in (0.03, True, True), (0.01, True, False), (0.5, False, False):
        error = np.full(5, (1 - skill) * variance)
        error[2:] = 0.0
        tuned = pilot.Tuned(np.ones(5), np.array([True, inside, True, True, True]), error)
        monkeypatch.setattr(pilot.Pilot, "tuned", lambda *_, tuned=tuned, **__: tuned)
        found = problems.equally_good(pilot_of(drawn[0]), frames, variance)
        assert np.isfinite(found).all() == kept


def mean_index_by_hand(sets):
    """One minus the mean squared cosine of two heads, of each set."""
    overlaps = [
        np.linalg.norm(a.T @ b) ** 2
        for frames in sets
        for k, a in enumerate(frames)
        for b in frames[:k]
    ]
    return 1 - np.mean(np.reshape(overlaps, (len(sets), -1)), axis=1) / sets.shape[3]


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
        index = mean_index_by_hand(problem.key_frames[:5])
        assert index / index[-1] == pytest.approx(places.LADDER, abs=1e-3)
        same = np.array_equal(problem.query_frames, problem.key_frames)
        assert same != fields["apart"]
        if fields["apart"]:
            wrong = draw_query_frames(problem.key_frames, fields["overlap"], fields["frames"])
            assert not np.allclose(problem.query_frames, wrong)
        scale = problem.bandwidth / problem.bandwidth[:, :, :1]
        assert np.allclose(scale[: places.HALF_ALIGNED], scale[0, 0])
        assert np.allclose(scale, 1) != fields["uneven"]
        sizes = problem.equal_bandwidth[: places.HALF_ALIGNED]
        assert not problem.equal or np.allclose(sizes, sizes[:1, :, :1])
        half = problem.heads // 2
        for array in (problem.query_frames, problem.key_frames, scale.transpose(0, 2, 1)):
            for place, end in ((places.HALF_ALIGNED, places.ALIGNED), (8, places.HAAR)):
                assert np.allclose(array[place], np.concatenate([array[end, :half]] * 2))
        if problem.fits:
            columns = np.concatenate([*problem.key_frames[places.ORTHOGONAL]], 1)
            assert np.allclose(columns.T @ columns, np.eye(columns.shape[1]))
        seen.add(problem.law.family)
    assert len(seen) >= 6


def test_fields_that_are_drawn_are_those_of_the_target_and_the_design(drawn):
    """Spectrum, directions, length scale and roughness, rows of queries, and separate Haar sets."""
    sizes = []
    for problem in drawn:
        fields, file = problem.fields, description.described(problem)["problem"]
        dimension, _, width = fields["size"]
        frequency = np.array(file["target"]["frequency"])
        count = min(dimension, round(width * fields["directions"]))
        directions = count if fields["few_directions"] else dimension
        assert np.linalg.matrix_rank(frequency) == directions
        squares = (frequency**2).sum(1) * fields["lengthscale"] ** 2  # over √m squared, and over m
        if fields["smoothness"] == "matern":
            sizes.append(f.cdf(squares, directions, 2 * fields["roughness"]))
        else:
            sizes.append(chi2.cdf(directions * squares, directions))
        if fields["family"] == "decaying":
            variances = np.linalg.eigvalsh(np.array(file["design"]["covariance"]))[::-1]
            powers = np.diff(np.log(variances)) / np.diff(np.log(np.arange(1, dimension + 1)))
            assert powers == pytest.approx(-fields["spectrum"])
            assert variances.mean() == pytest.approx(1)
        if fields["family"] in ("digits", "text"):
            rows = np.load(f"sims/problem/tables/{fields['family']}.npy").astype(float)
            rows = rows[:, :dimension] / np.sqrt(rows[:, :dimension].var(0).mean())
            apart = abs(problem.queries(0)[:, None] - rows[None]).max(2)
            assert (apart.argmin(1) >= int(0.75 * len(rows))).all()
            assert apart.min(1).max() < 1e-6
        assert not np.allclose(problem.key_frames[places.HAAR], problem.key_frames[places.THIRD])
        facts = description.population(problem)
        ladder = mean_index_by_hand(problem.key_frames[[places.HAAR]])
        assert facts["diversity"] == pytest.approx(ladder[0])
        assert facts["beats"] == (problem.ridge > 1 and problem.full_head > 1)
    assert kstest(np.concatenate(sizes), "uniform").pvalue > 1e-3


def test_a_problem_of_the_law_says_what_it_is(capsys):
    assert run("decompose", "house#0", "--dry") == 0
    assert "problem" in capsys.readouterr().out


def test_the_error_of_linear_targets_is_affine_in_the_index_with_infinitely_many_keys():
    """The proposition of docs/theory/diversity.md over 4,000 common rotations, at every rung."""
    rng, heads, width, dimension, shrinkage = np.random.default_rng(5), 4, 2, 8, 0.6
    _, ladder = draw_key_frames(7, dimension, heads, width)
    slope = rng.normal(size=dimension)
    rotations = draw_rotations(rng, 4000, dimension)[:, 0, 0]
    for frames, index in zip(ladder[:5], mean_index_by_hand(ladder[:5]), strict=True):
        projection = np.einsum("hdi,hei->de", frames, frames) / heads
        turned = slope @ rotations
        left = shrinkage * turned @ projection - turned
        error = (left**2).sum(1) / (slope @ slope)
        share = width / dimension
        stated = 1 - 2 * shrinkage * share + shrinkage**2 * share * (1 - (1 - 1 / heads) * index)
        assert abs(error.mean() - stated) < FAR * mcse(error)
