"""Batches that are kept while a run goes on: killed anywhere, it ends with the same numbers."""

import itertools
from contextlib import suppress

import jax
import numpy as np
import pytest
import xarray as xr

from sims.errors import InputError
from sims.montecarlo import Checkpoint, Fold, HostBatches, HostReplicates, Replicates, run

SIZES = {"replicates_per_batch": 4, "batches": 13}


class Killed(BaseException):
    """No exception that code in between would catch."""


def pilot(draw):
    """Drawn anew by every run, and the same."""
    key = getattr(draw, "key", draw)
    return np.asarray(jax.random.normal(key, (3,)))


def traced(key, shared, batch):
    return {"x": jax.random.normal(key, (3,)) * shared, "y": jax.random.uniform(key)}


def host(draw, shared, batch):
    return {"x": draw.rng().normal(size=3) * shared, "y": draw.rng().uniform()}


def whole(draw, replicates, shared):
    return {"x": draw.rng().normal(size=(replicates, 3)).mean(0) * shared}


X = {"dims": {"x": "c"}, "prepare": pilot}
TOTAL = Fold(
    lambda shared: 0.0,
    lambda carry, value, count: carry + value["y"],
    lambda carry, count: {"total": carry},
)
SAMPLERS = {
    "jax replicates": lambda: Replicates(traced, **X),
    "a fold": lambda: Replicates(traced, prepare=pilot, reduce=TOTAL),
    "kept replicates": lambda: HostReplicates(host, reduce="stack", **X),
    "host replicates": lambda: HostReplicates(host, **X),
    "host batches": lambda: HostBatches(whole, **X),
}


class Counted:
    """A sampler that counts the batches that were computed, and is killed after some of them."""

    def __init__(self, sampler, last=None):
        self.sampler, self.last, self.computed = sampler, last, []

    def __getattr__(self, name):
        return getattr(self.sampler, name)

    def start(self, *arguments):
        rounds = self.sampler.start(*arguments)
        gather, dispatch, order = rounds.gather, rounds.dispatch, itertools.count()

        def begun(first):
            return first, dispatch(first)

        def ended(handle):
            if self.last is not None and next(order) >= self.last:
                raise Killed
            self.computed += range(handle[0], handle[0] + rounds.width)
            return gather(handle[1])

        rounds.dispatch, rounds.gather = begun, ended
        return rounds


def killed(sampler, checkpoint, **options):
    with pytest.raises(Killed):
        run(sampler, 5, checkpoint=checkpoint, **SIZES | options)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_killed_run_goes_on_to_the_same_bits(kind, tmp_path):
    """Killed twice, where nothing can be saved as it dies: what was saved is not computed again."""
    quiet = run(SAMPLERS[kind](), 5, **SIZES)
    done = set()
    for last in (2, 3):
        sampler, keep = Counted(SAMPLERS[kind](), last), Checkpoint(tmp_path)
        keep.seconds = 0.0
        killed(sampler, keep)
        assert not done & set(sampler.computed)
        done |= set(sampler.computed)
    last = Counted(SAMPLERS[kind]())
    again = run(last, 5, checkpoint=Checkpoint(tmp_path), **SIZES)
    assert not done & set(last.computed)
    xr.testing.assert_identical(again, quiet)


def test_an_exception_saves_what_was_computed(tmp_path):
    sampler, keep = Counted(SAMPLERS["host batches"](), 5), Checkpoint(tmp_path)
    killed(sampler, keep)
    assert sorted(keep.load(run(sampler.sampler, 5, **SIZES).attrs["problem"])[0]) == [*range(5)]


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("cuts", [(13,), (5, 6, 13), (1, 2, 4, 7, 8, 11, 13)], ids=len)
def test_parts_in_any_order_are_the_whole(kind, cuts, tmp_path):
    """Shards in random order, each killed once on its way."""
    quiet = run(SAMPLERS[kind](), 5, **SIZES)
    parts = [range(*pair) for pair in itertools.pairwise((0, *cuts))]
    for place in np.random.default_rng(len(cuts)).permutation(len(parts)):
        keep = Checkpoint(tmp_path, parts[place])
        keep.seconds = 0.0
        with suppress(Killed):  # a shard before it may have computed all of a short part
            run(Counted(SAMPLERS[kind](), 1), 5, checkpoint=keep, **SIZES)
        piece = run(SAMPLERS[kind](), 5, checkpoint=keep, **SIZES)
        name = next(iter(piece.data_vars))
        np.testing.assert_array_equal(piece[name], quiet[name][parts[place]])
        with pytest.raises(InputError, match="resume"):
            run(SAMPLERS[kind](), 5, resume=piece, **SIZES)
    closed = Checkpoint(tmp_path, closed=True)
    nothing = Counted(SAMPLERS[kind](), 0)
    xr.testing.assert_identical(run(nothing, 5, checkpoint=closed, **SIZES), quiet)
    assert nothing.computed == []


def test_what_is_missing_is_named(tmp_path):
    sampler = SAMPLERS["host batches"]()
    run(sampler, 5, checkpoint=Checkpoint(tmp_path, range(4)), **SIZES)
    with pytest.raises(InputError, match="got 'nothing from batch 4 on'"):
        run(sampler, 5, checkpoint=Checkpoint(tmp_path, closed=True), **SIZES)


def test_precision_stops_where_it_would_have(tmp_path):
    """Batches beyond it, which another shard computed, change nothing."""
    options = {"replicates_per_batch": 4, "batches": 2, "rel_mcse": 0.04, "max_batches": 400}
    sampler = HostReplicates(lambda draw, shared, batch: {"y": draw.rng().uniform()})
    quiet = run(sampler, 1, **options)
    assert 8 < quiet.attrs["batches"] < 300
    run(sampler, 1, checkpoint=Checkpoint(tmp_path, range(300)), **options)
    again = run(sampler, 1, checkpoint=Checkpoint(tmp_path, closed=True), **options)
    xr.testing.assert_identical(again, quiet)


def test_groups_of_another_run_and_damaged_ones_are_computed_again(tmp_path, capsys):
    sampler, keep = SAMPLERS["host batches"](), Checkpoint(tmp_path)
    keep.seconds = 0.0
    quiet = run(sampler, 5, **SIZES)
    killed(Counted(sampler, 6), keep)
    first, second = sorted(tmp_path.iterdir())[:2]
    first.write_bytes(first.read_bytes()[:-9])
    other = Checkpoint(tmp_path / "other", range(1, 2))
    run(sampler, 6, checkpoint=other, **SIZES)
    second.write_bytes((tmp_path / "other" / second.name).read_bytes())
    again = Counted(sampler)
    xr.testing.assert_identical(run(again, 5, checkpoint=Checkpoint(tmp_path), **SIZES), quiet)
    said = capsys.readouterr().err
    assert f"{first}: got" in said
    assert f"{second}: got batches of another run" in said
    assert again.computed[:2] == [0, 1]
    assert set(again.computed) == {0, 1, *range(6, 13)}


def test_seconds_are_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMS_CHECKPOINT_SECONDS", "soon")
    with pytest.raises(InputError, match="SIMS_CHECKPOINT_SECONDS: got 'soon'"):
        Checkpoint(tmp_path)
