"""An experiment without code: a law that draws fields of a problem of ``sims decompose``.

In its file, ``law.problem`` is a problem, and every other key of ``law`` except ``text`` is a
dotted path in it with its distribution.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.base.terms import BATCH, SCALARS
from sims.base.validation import parse
from sims.judgement.effects import Effects, gap
from sims.study.grid import changed, label
from sims.study.results import Results
from sims.study.stacking import Scalar
from sims.study.study import Fields, Study

if TYPE_CHECKING:
    from sims.montecarlo import Sampler
    from sims.study.specification import Problem

CAPTION = "Points: a problem each, with bars of two Monte Carlo standard errors.\n"
"""Caption of the default figure."""
PROBLEMS = 100
"""Default number of problems."""


@dataclass(frozen=True)
class DrawnProblem:
    """A problem of the law.

    Attributes:
        fields: dotted paths to the values drawn.
        data: the problem as in a file.
        built: its arrays.
    """

    fields: Mapping[str, Any]
    data: dict[str, Any]
    built: "Problem"


class DrawnStudy(Study[DrawnProblem]):
    """Study of drawn problems whose effects are gaps between both methods, by term."""

    def problem(self, fields: Fields) -> DrawnProblem:
        from sims.study.specification import ProblemSpec

        data = changed(self.spec.law["problem"], fields)
        data = self.declared.resolved(data)
        location = f"{self.name}: problem {fields.number} of the law"
        context = {"allow_code": self.allow_code}
        built = parse(ProblemSpec, data, location, context=context).build()
        return DrawnProblem(dict(fields), data, built)

    def sampler(self, problem: DrawnProblem) -> "Sampler":
        from sims.simulation.engine import sampler_of

        options = self.simulation.estimator | {"keep_queries": False}
        return sampler_of(*problem.built, **options)[0]

    def theory(self, problem: DrawnProblem) -> xr.Dataset:
        """Theory's terms, of the order in the settings (first, exact or auto)."""
        from sims.theory import predict

        return predict(*problem.built, order=self.settings.get("order", "first"))

    def effects(self, results: Results) -> Mapping[str, Effects]:
        """Relative gaps of the two methods for every scalar term, simulated / predicted − 1."""
        simulated = _join(results.estimates)
        predicted = _join(results.predictions)
        gaps = {}
        for term in SCALARS:
            batches = simulated[term].transpose("problem", BATCH).values
            gaps[term] = gap(batches, predicted[term].values)
        return gaps

    def parameters(self, results: Results) -> pd.DataFrame:
        """Drawn parameters, one row per problem, without seeds."""
        frame = pd.DataFrame(list(results.coordinates.values()))
        lengths = frame.astype(str).apply(lambda column: column.str.len().max())
        return frame.loc[:, lengths < 19]

    def as_file(self, problem: DrawnProblem) -> dict[str, Any]:
        return {"problem": problem.data}

    @property
    def simulated(self) -> int:
        return int(self.settings.get("problems", PROBLEMS))

    def coordinates(self, number: int, problem: DrawnProblem) -> Mapping[str, Scalar]:
        """Drawn fields, with labels for values that are not scalars."""
        coordinates = {}
        for path, value in problem.fields.items():
            coordinates[path] = str(value) if isinstance(value, list) else label(value)
        return coordinates

    def predictions(self) -> dict[str, xr.Dataset]:
        """Theory's terms, one point per problem, since sizes may differ."""
        from sims.base.runtime import in_threads

        problems = [self.draw(number) for number in range(self.simulated)]
        terms = in_threads(self.theory, problems)
        return {f"{number:04d}": row for number, row in enumerate(terms)}

    def predicted_coordinates(self) -> Mapping[str, Mapping[str, Scalar]]:
        numbers = range(self.simulated)
        return {f"{k:04d}": self.coordinates(k, self.draw(k)) for k in numbers}


def _join(terms: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Scalar terms of all problems, along ``problem``."""
    scalars = [of_problem[[*SCALARS]] for of_problem in terms.values()]
    return xr.concat(scalars, "problem", coords="minimal")
