"""Error against the number of heads: D growing or fixed, heads aligned or diverse."""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import common, ratio
from sims.study.results import Results

WIDTH, BUDGET = 4, 16
"""d_k of the growing budget, and the fixed budget D."""
DIVERSE, HALF, ALIGNED = 0.0, 0.5, 1.0
KINDS = {ALIGNED: "aligned", HALF: "noise correlation ½", DIVERSE: "diverse"}
PARTS = ("integrated_bias_product", "integrated_signal_covariance", "integrated_noise_covariance")


class Ensemble(NamedTuple):
    """The average of the first heads of a point."""

    heads: int
    width: int
    correlation: float

    @property
    def label(self) -> str:
        return f"{self.heads} {KINDS[self.correlation]} of width {self.width}"


class Errors:
    """Mean squared errors of ensembles: batches, and the point they are from.

    Of the fixed problems, or of the populations of one kernel and number of keys, in which target
    and queries are drawn anew for every batch.
    """

    def __init__(
        self, results: Results, kernel: str | None = None, keys: float | None = None
    ) -> None:
        self.results = results
        self.kernel = kernel
        self.point: dict[Ensemble, str] = {}
        drawn = {p: results.coordinates[p].get("population") is not None for p in results.points}
        kernels = {p: results.coordinates[p].get("heads.kernel") for p in results.points}
        for name in results.points:
            if drawn[name] != (kernel is not None) or (kernel and kernels[name] != kernel):
                continue
            if keys is not None and results.number(name, "n") != keys:
                continue
            heads, width = (int(results.number(name, f"heads.{k}")) for k in ("count", "width"))
            # One head is the same whatever the correlation of the noise of several.
            kinds = tuple(KINDS) if heads == 1 else (results.number(name, "design.correlation"),)
            sizes = [2**k for k in range(heads.bit_length())] if width == WIDTH else [heads]
            self.point |= {Ensemble(size, width, kind): name for kind in kinds for size in sizes}
        self.batches = {e: _error(results.estimates[p], e.heads) for e, p in self.point.items()}

    def growing(self, kind: float) -> list[Ensemble]:
        """Ensembles of width :data:`WIDTH`, by H."""
        return sorted(e for e in self.point if e.width == WIDTH and e.correlation == kind)

    def fixed(self, kind: float) -> list[Ensemble]:
        """Ensembles of budget :data:`BUDGET`, by H."""
        return sorted(e for e in self.point if e[0] * e[1] == BUDGET and e.correlation == kind)

    def predicted(self, ensemble: Ensemble, parts: tuple[str, ...] = PARTS) -> float:
        """The error, or the sum of some of its parts, by first-order theory."""
        theory = self.results.prediction(self.point[ensemble])
        return float(_error(theory, ensemble.heads, parts))

    def drop(self, first: Ensemble, second: Ensemble) -> Effect:
        """1 − second/first of the means, paired over common batches."""
        a, b = common(self.batches[first], self.batches[second])
        return self._effect(1 - ratio(b, a), first, second)

    def same(self, first: Ensemble, second: Ensemble) -> Effect:
        """second/first − 1, one a common batch, which are all to be 0."""
        a, b = common(self.batches[first], self.batches[second])
        return Effect(second.label, values=b / a - 1)

    def gain_lost(self, first: Ensemble, second: Ensemble, third: Ensemble) -> Effect:
        """Gain of the first step less gain of the second, in units of one head's error."""
        one = self.batches[self.growing(DIVERSE)[0]].mean()
        a, b, c = common(*(self.batches[e] for e in (first, second, third)))
        return self._effect((a - 2 * b + c) / one, first, second, third)

    def gap(self, ensemble: Ensemble) -> Effect:
        """Simulated over predicted error, less 1, with the share of variance in the latter."""
        theory = self.predicted(ensemble)
        facts = {"variance_share": self.predicted(ensemble, PARTS[1:]) / theory}
        return replace(self._effect(self.batches[ensemble] / theory - 1, ensemble), at=facts)

    def _effect(self, values: np.ndarray, *of: Ensemble) -> Effect:
        label = " to ".join(ensemble.label for ensemble in of)
        facts = {"kernel": self.kernel} if self.kernel else {}
        return of_batches(label, values, [self.point[e] for e in of], at=facts)


def _error(data: xr.Dataset, heads: int, parts: tuple[str, ...] = PARTS) -> np.ndarray:
    """Mean squared error of the average of the first heads, or parts of it; one a batch."""
    matrix = np.sum([data[part].values for part in parts], axis=0)
    return np.asarray(matrix[..., :heads, :heads].mean((-2, -1)))


def effects(results: Results) -> Families:
    """Paired differences of the error between ensembles, and its gaps to theory."""
    errors = Errors(results)
    aligned, diverse = errors.growing(ALIGNED), errors.growing(DIVERSE)
    split = errors.fixed(DIVERSE)
    drawn, splits = (populations(results, keys) for keys in key_counts(results))
    return {
        "aligned heads": [errors.same(aligned[0], e) for e in aligned[1:]],
        "doubling": [errors.drop(a, b) for a, b in pairwise(diverse)],
        "gain lost": [errors.gain_lost(*diverse[k : k + 3]) for k in range(len(diverse) - 2)],
        "diverse against aligned": [
            errors.drop(e._replace(correlation=ALIGNED), e) for e in split if e.heads > 1
        ],
        "a split between, drawn": [each for own in splits for each in beats_the_ends(own)],
        "gap to first order": [errors.gap(e) for e in errors.point],
        "doubling, drawn": [
            own.drop(a, b) for own in drawn for a, b in pairwise(own.growing(DIVERSE))
        ],
        "diverse against aligned, drawn": [
            own.drop(e._replace(correlation=ALIGNED), e)
            for own in drawn
            for e in own.fixed(DIVERSE)
            if e.heads > 1
        ],
    }


def beats_the_ends(errors: Errors) -> list[Effect]:
    """By how much the split between has a smaller error than the two at the ends."""
    one, between, most = errors.fixed(DIVERSE)
    return [errors.drop(end, between) for end in (one, most)]


def key_counts(results: Results) -> tuple[float, float]:
    """The smallest and the largest n of the populations; 0 if there are none."""
    at = results.coordinates.items()
    drawn = {results.number(name, "n") for name, own in at if own.get("population") is not None}
    return min(drawn, default=0.0), max(drawn, default=0.0)


def populations(results: Results, keys: float) -> list[Errors]:
    """Errors of the populations with that many keys, a kernel each."""
    at = results.coordinates.values()
    kernels = {str(c["heads.kernel"]) for c in at if c.get("population") is not None}
    return [Errors(results, kernel, keys) for kernel in sorted(kernels)]
