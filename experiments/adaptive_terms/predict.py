"""Three theories of every point, and the gap of two of them along a line of sizes.

``first`` and ``exact`` are theory of adaptive radii; ``fixed`` is first order with every radius
held at its limit. Exact theory is NaN where too few keys are attended to, or there are too many.
"""

import numpy as np
import xarray as xr

from sims.problem import Heads
from sims.runtime import in_threads
from sims.study.experiment import Experiment, Point
from sims.study.results import ORDER
from sims.study.specification import Problem, ProblemSpec
from sims.terms import HEAD, PROBLEM, QUERY
from sims.theory import predict as theory
from sims.theory.first_order.adaptive import adaptive_terms
from sims.weights import WeightRule
from sims.weights.entmax import Entmax

TERMS = ("signal_variance", "cross_signal_covariance", "noise_variance", "cross_noise_covariance")
CURVE = ("signal_variance", "noise_variance")
ACCURATE = 1e-6
"""Of exact theory along the line of sizes, whose gap to first order is what counts there."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every point's terms; the first point of each ν carries ``curve_<term>`` (order, size).

    The first one of each ν with the keys of ``drawn`` has ``each_<term>`` of drawn problems.
    """
    points, settings = experiment.points, experiment.settings
    own = settings["drawn"]
    carriers: dict[str, str] = {}
    redrawn: dict[str, str] = {}
    for point in points:
        kernel = str(point.coordinates["heads.kernel"])
        carriers.setdefault(kernel, point.name)
        if point.spec.n == own["n"]:
            redrawn.setdefault(kernel, point.name)

    def terms(point: Point) -> xr.Dataset:
        problem = point.spec.build()
        data = three(
            problem, experiment.theory.rtol, settings["least_attended"], settings["most_exact"]
        )
        if point.name in carriers.values():
            data = data.merge(curve(problem, settings["sizes"]))
        if point.name in redrawn.values():
            first = experiment.simulation.seed
            seeds = range(first, first + own["problems"])
            data = data.merge(drawn([again(point.spec, seed).build() for seed in seeds]))
        return data

    return dict(zip([p.name for p in points], in_threads(terms, points), strict=True))


def three(problem: Problem, rtol: float | None, least: float, most: int) -> xr.Dataset:
    """Terms and bias by each theory, with the bounds on the errors of exact theory.

    Exact theory is asked where ``least`` keys are attended to and n is ``most`` or below.
    """
    first = theory(*problem)
    fixed = adaptive_terms(*problem, hold=True)
    names = [name for term in (*TERMS, "bias") for name in (term, f"{term}_error")]
    exact = xr.Dataset()
    if problem.n <= most and float(first["attended"].min()) >= least:
        exact = theory(*problem, order="exact", rtol=rtol)

    def row(data: xr.Dataset) -> xr.Dataset:
        missing = {
            name: xr.full_like(first["bias" if name.startswith("bias") else TERMS[0]], np.nan)
            for name in names
        }
        return xr.Dataset({name: data.get(name, missing[name]) for name in names})

    rows = xr.concat([row(data) for data in (first, exact, fixed)], ORDER)
    return rows.assign_coords({ORDER: ["first", "exact", "fixed"]}).assign(
        limit=((QUERY, HEAD), (first["limit"] - truth(problem)).values),
        n_eff=1 / (1 / first["n_eff"]).mean(),
        attended=first["attended"].min(),
    )


def again(spec: ProblemSpec, seed: int) -> ProblemSpec:
    """The problem with other frames and queries."""
    assert spec.heads.frames is not None  # for the type checker
    frames = spec.heads.frames.model_copy(update={"seed": seed})
    queries = spec.queries.model_copy(update={"seed": seed})
    heads = spec.heads.model_copy(update={"frames": frames})
    return spec.model_copy(update={"heads": heads, "queries": queries})


def drawn(problems: list[Problem]) -> xr.Dataset:
    """First-order terms of drawn problems, with radii that adapt or are held, and their keys."""
    each = [(theory(*problem), adaptive_terms(*problem, hold=True)) for problem in problems]
    first, fixed = (
        xr.concat([data[list(TERMS)] for data in road], PROBLEM) for road in zip(*each, strict=True)
    )
    rows = xr.concat([first, xr.full_like(first, np.nan), fixed], ORDER)
    rows = rows.assign_coords({ORDER: ["first", "exact", "fixed"]}).transpose(ORDER, PROBLEM)
    keys = [float(1 / (1 / data["n_eff"]).mean()) for data, _ in each]
    rows = rows.assign(n_eff=(PROBLEM, keys))
    return rows.rename({name: f"each_{name}" for name in rows.data_vars})


def truth(problem: Problem) -> xr.DataArray:
    """m at the queries."""
    return xr.DataArray(np.asarray(problem.task.target(problem.queries)), dims=QUERY)


def curve(problem: Problem, sizes: list[int]) -> xr.Dataset:
    """First-order and exact terms of one head at one mean kernel, for these numbers of keys."""
    heads = problem.heads
    rule = heads.rule
    assert isinstance(rule, WeightRule)  # for the type checker, as the next line
    assert isinstance(rule.weights, Entmax)
    nu = rule.weights.nu
    rows = []
    for size in sizes:
        # The mean kernel is (2sν)^ν/n: it stays if s goes with n^{1/ν}.
        bandwidth = float(heads.bandwidth[0]) * (size / problem.n) ** (0.5 / nu)
        one = Heads(heads.frames[:1], rule, bandwidth)
        both = [
            theory(problem.task, one, size, problem.queries),
            theory(problem.task, one, size, problem.queries, order="exact", rtol=ACCURATE),
        ]
        rows.append(xr.concat([data[list(CURVE)] for data in both], "road"))
    lines = xr.concat(rows, "size").assign_coords(size=sizes, road=["first", "exact"])
    return lines.rename({name: f"curve_{name}" for name in CURVE})
