"""Numbers of `hierarchy` by loops, or made by hand."""

import numpy as np
import pytest
import xarray as xr

from sims.montecarlo import Draw
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import is_mean_of

hierarchy = load_experiment("hierarchy")
effects, simulate = (hierarchy.module(name) for name in ("effects", "simulate"))
BATCHES = 8


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def one_draw():
    return Draw.of(9, (3,), 1).draw(2)


def test_wide_heads_are_those_of_at_least_as_many_dimensions_as_tokens(rng):
    """The four sizes that the row on probabilities names are judged, at one level and at two."""
    estimates, laws, at = {}, {}, {}
    for width, head in hierarchy.settings["semidefinite"]["sizes"]:
        name = f"{width} {head}"
        own = {k: ("batch", rng.uniform(0.1, 0.9, BATCHES)) for k in ("one", "two")}
        own |= {k: ("batch", np.zeros(BATCHES)) for k in ("positive", "negative")}
        estimates[name] = xr.Dataset(own)
        laws[name] = xr.Dataset({"one": rng.uniform(), "two": rng.uniform()})
        at[name] = {"part": "semidefinite", "width": width, "head_width": head}
    results = Results("hierarchy", "smoke", estimates, laws, {}, at, {}, {})
    found = effects.definiteness(results)["share semidefinite"]
    assert len(found) == 12
    (row,) = [c for c in hierarchy.claims if c.effects == "share semidefinite"]
    assert row.where == {"wide": "yes"}
    wide = {effect.label for effect in found if effect.at["wide"] == "yes"}
    sizes = ("1 1", "2 2", "2 3", "3 3")
    assert wide == {f"{size}, {share}" for size in sizes for share in ("one", "two")}
    for effect in found:
        name, share = effect.label.split(", ")
        is_mean_of(effect, estimates[name][share].values - float(laws[name][share]))


def test_the_coarsest_level_has_a_token_for_every_two_of_the_level_below(rng):
    """16 tokens on three levels are 4 on the last, two for each of two features."""
    gaps = {name: ("batch", rng.normal(size=BATCHES)) for name in effects.GAPS}
    counts = {name: ("batch", np.full(BATCHES, 7)) for name in effects.COUNTS}
    data = xr.Dataset(gaps | counts | {"columns": ("batch", np.full(BATCHES, 6))})
    at = {"p": {"part": "checks", "tokens": 16, "width": 2, "levels": 3}}
    law = {"p": xr.Dataset(dict.fromkeys(effects.COUNTS, 5))}
    found = effects.identities(Results("hierarchy", "smoke", {"p": data}, law, {}, at, {}, {}))
    for name in effects.GAPS:
        (effect,) = found[name]
        assert effect.at == {"levels": 3, "tokens": 16, "full": "yes", "coarsest": 2}
        np.testing.assert_array_equal(effect.values, gaps[name][1])
    assert all(found[name][0].values.tolist() == [2] * BATCHES for name in effects.COUNTS)


def test_an_eigenvalue_below_zero_is_counted_in_units_of_rounding(monkeypatch):
    """Scores whose least eigenvalue is −2⁻³⁰ of their largest: 2²² units over four tokens."""
    own = np.diag([1.0, 0.5, 0.25, -(2.0**-30)])
    monkeypatch.setattr(simulate.hierarchy, "mixed", lambda *_: 8 * own)
    found = simulate.checks(4, 2, 2, one_draw(), 1, None)
    assert found["definite"] == pytest.approx(2.0**22 / 4)


def test_a_search_ends_at_the_first_size_with_one_violation():
    """Rounding is none; at no violation all sizes are counted, and the largest value is left."""
    sizes = {"a": [-0.3, 1e-12], "b": [-0.2, 0.4], "c": [2.0, 3.0]}

    def smallest(*names):
        data = {name: xr.Dataset({"violation": ("batch", sizes[name])}) for name in names}
        at = {name: {"part": "strict"} for name in names}
        return effects.smallest(Results("hierarchy", "smoke", data, {}, {}, at, {}, {}), "strict")

    assert (smallest("a", "b", "c").label, smallest("a", "b", "c").value) == ("smallest: b", 0.4)
    assert (smallest("a").label, smallest("a").value) == ("none at 1 sizes", 1e-12)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_narrow_heads_err_by_no_more_than_levels_and_ranks_do(levels):
    """Of all three levels ranks alone are left out. The best forms err by what Eckart and Young
    say, and so by less than leading singular vectors."""
    settings = {
        "tokens": 16,
        "width": 3,
        "weights": [0.5, 0.3, 0.2],
        "levels": levels,
        "taps": [0.6, 0.8],
        "decay": 0.5,
        "draws": 50,
    }
    found = hierarchy.module("simulate_ranks").narrowed(settings, 1, one_draw(), 1, None)
    assert -1 < found["excess"].min() < found["excess"].max() < 0
    assert found["least"].max() < 64
    assert 0 < found["gain"].min() < 0.5 < found["gain"].max() < 1


def test_truncated_scores_are_of_levels_whose_taps_have_norm_1():
    """Every level's tokens and scores by loops over the same draw; two levels of four are kept."""
    n, d, kept, spectrum = 8, 3, 3, [0.4, 0.3, 0.2, 0.1]
    settings = {"tokens": n, "width": d, "kept": kept}
    found = simulate.truncated(settings, spectrum, one_draw(), 1, None)["error"]
    x, taps, pairs, _ = simulate.drawn(one_draw().rng(), n, d, len(spectrum))
    size = np.hypot(*taps)
    assert abs(size - 1) > 0.1
    own, parts = x, []
    for level, (query, key) in enumerate(pairs):
        scores = np.zeros((n, n))
        for i, j in np.ndindex(n, n):
            scores[i, j] = (own[i // 2**level] @ query) @ (own[j // 2**level] @ key)
        parts.append(scores)
        coarse = []
        for t in range(0, len(own), 2):
            before = own[t - 1] if t else np.zeros(d)
            coarse.append((taps[0] * own[t] + taps[1] * before) / size)
        own = np.array(coarse)
    target = sum(w * part for w, part in zip(spectrum, parts, strict=True))
    for count in range(1, kept + 1):
        model = sum(spectrum[k] * parts[k] for k in range(count)) / sum(spectrum[:count])
        error = np.linalg.norm(target - model) / np.linalg.norm(target)
        assert found[count - 1] == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_remainders_of_blocks_are_sizes_whatever_their_sign(order):
    """The log of the mean of e^{q·k} less its cumulants, direction by direction."""
    settings = {"keys": 5, "width": 2, "draws": 40, "scale": [0.1, 0.5]}
    found = simulate.blocks(settings, order, one_draw(), 1, None)["remainder"]
    rng = one_draw().rng()
    keys, directions = rng.exponential(size=(40, 5, 2)), rng.normal(size=(40, 2))
    signs = set()
    for place, scale in enumerate(settings["scale"]):
        sizes = []
        for own, direction in zip(keys, directions, strict=True):
            z = scale * own @ direction / np.hypot(*direction)
            m, u = z.mean(), z - z.mean()
            fourth = np.mean(u**4) - 3 * np.mean(u**2) ** 2
            terms = [m, np.mean(u**2) / 2, np.mean(u**3) / 6, fourth / 24]
            gap = np.log(np.mean(np.exp(z))) - sum(terms[:order])
            signs.add(gap > 0)
            sizes.append(abs(gap))
        assert found[place] == pytest.approx(np.mean(sizes), rel=1e-6)
    # Without the second cumulant the inequality of Jensen has all of one sign.
    assert len(signs) == (1 if order == 1 else 2)


def test_a_step_of_the_error_is_taken_where_every_batch_has_an_error(rng):
    """From the first two levels to the last; not where one batch is left with rounding alone."""
    data = rng.uniform(0.5, 1, (8, 3)) * 4.0 ** -np.arange(3)
    data[3, 2] = 1e-12
    nothing = {k: (("batch", "replicate"), np.zeros((8, 2))) for k in ("identity", "bound")}
    errors = xr.Dataset({"error": (("batch", "kept"), data), **nothing}, {"kept": [1, 2, 3]})
    at = {"p": {"part": "truncation", "spectrum": "power law"}}
    results = Results("hierarchy", "smoke", {"p": errors}, {}, {}, at, {}, {})
    found = load_experiment("hierarchy").module("effects").truncation(results)["step of the error"]
    assert len(found) == 1
    is_mean_of(found[0], data[:, 1] / data[:, 0])
