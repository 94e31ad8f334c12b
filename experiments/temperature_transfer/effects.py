"""Losses from a kept temperature, exponents, attended keys; both roads and each beside itself."""

from collections.abc import Callable, Sequence

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife
from sims.study.results import Results

from .problems import ENTMAX
from .roads import (
    BETA,
    MATCHED,
    SCALED,
    Case,
    Road,
    cases,
    log_grids,
    of_rule,
    simulation_of,
    theory_of,
)
from .tuning import Kept, between, kept

FAR = 3
"""Sizes of theory from this place on, 64 times the size of tuning, make exponents."""
LAST = -1
"""Place of the largest simulated size."""
AT_256 = 4
"""Place in theory's sizes of 256 times the size of tuning."""


def effects(results: Results) -> Families:
    """Every family that a claim names."""
    theory, simulation = theory_of(results), simulation_of(results)
    return {
        "loss of the matched rule": losses(theory, matched=True),
        "loss of the others": losses(theory, matched=False),
        "simulated loss": [
            simulation.effect(f"{case.label}, n = {n:g}", values, case, size=float(n))
            for case in cases(simulation)
            for n, values in zip(
                simulation.sizes[1:],
                simulation.pseudovalues(lambda k: k.loss, case).T[1:],
                strict=True,
            )
        ],
        "loss, simulation over theory": compared(simulation, theory),
        "exponent of the temperature": temperature_slopes(theory),
        "exponent of the attended keys": support_slopes(theory),
        "attended, simulation over theory": attended(simulation, theory),
        "exponent on the sphere": sphere(results),
        "unequal norms, attended": unequal_attended(results),
        "unequal norms, error falls": unequal_error(results),
        "error over that of 1.5-entmax": against(simulation),
        "least error over softmax's": retuned(simulation, "softmax", (*ENTMAX, "relu gap")),
        "least error over 1.5-entmax's": retuned(simulation, "1.5-entmax", ("top-k, k fixed",)),
        "relu gap over softmax": gap_to_softmax(simulation),
    }


def effective(theory: Road, case: Case) -> np.ndarray:
    """Effective keys of a kept rule by theory: the harmonic mean over problems; (size,)."""
    share = keys_of(theory, case, "1/n_eff").mean(0)
    return 1 / between(share, theory.logs[case.width][case.source], held(theory, case))


def keys_of(theory: Road, case: Case, kind: str) -> np.ndarray:
    """Means of 1/n_eff, or of attended keys, by theory, (group, step, size)."""
    return of_rule(theory.data[case.width]["keys" + case.end].sel(of=kind), case)


def held(theory: Road, case: Case) -> np.ndarray:
    """The logarithm of theory's kept parameter, (size,)."""
    return np.asarray(theory.kept(case)(theory.values(case).mean(0)).held + 0 * theory.sizes)


def losses(theory: Road, *, matched: bool) -> list[Effect]:
    """Theory's losses: of the α-entmax with ν = β at every size, of all others at 256 times."""
    out = []
    for case in cases(theory):
        if (case.rule == MATCHED[case.smoothness]) != matched or case.rule == SCALED:
            continue
        values = theory.pseudovalues(lambda k: k.loss, case).T
        keys = np.fmin.accumulate(effective(theory, case))
        places = range(1, len(theory.sizes) - 1) if matched else [AT_256]
        out += [
            theory.effect(
                f"{case.label}, n = {theory.sizes[i]:g}",
                values[i],
                case,
                n_eff=float(keys[i]),
                size=float(theory.sizes[i]),
            )
            for i in places
        ]
    return out


def compared(simulation: Road, theory: Road) -> list[Effect]:
    """Error at the kept parameter over that at the best: simulation's ratio over theory's, less 1.

    On the same problems; the parameters are theory's on both roads.
    """
    out = []
    for case in cases(simulation):
        count = len(simulation.sizes)
        keys = np.fmin.accumulate(effective(theory, case))
        chosen = first(theory, case, count)(theory.values(case)[..., :count].mean(0))
        held_at = chosen.held + 0 * chosen.tuned

        def quotient(
            mean: np.ndarray,
            road: Road,
            case: Case = case,
            at: Kept = chosen,
            held_at: np.ndarray = held_at,
        ) -> np.ndarray:
            logs = road.logs[case.width][case.source]
            return between(mean, logs, held_at) / between(mean, logs, at.tuned)

        own = {"simulation": simulation.values(case), "theory": theory.values(case)[..., :count]}
        values = jackknife(
            own,
            lambda mean, q=quotient: (  # type: ignore[misc]
                q(mean["simulation"], simulation) / q(mean["theory"], theory) - 1
            ),
        )
        out += [
            simulation.effect(
                f"{case.label}, n = {simulation.sizes[i]:g}",
                values[:, i],
                case,
                n_eff=float(keys[i]),
                size=float(simulation.sizes[i]),
            )
            for i in range(1, count)
        ]
    return out


def first(theory: Road, case: Case, count: int) -> Callable[[np.ndarray], Kept]:
    """As :meth:`Road.kept`, of the first sizes alone."""
    logs, growth = theory.logs[case.width][case.source], case.growth(theory.sizes[:count])
    return lambda mse: kept(mse, logs, growth)


def slope_of(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Least-squares slope along the last axis on log x."""
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(values @ centred / (centred @ centred))


def temperature_slopes(theory: Road) -> list[Effect]:
    """Slope of log s_best on log n less the law's; softmax and α-entmax."""
    out, sizes = [], theory.sizes[FAR:]
    for case in cases(theory):
        if case.rule not in ("softmax", *ENTMAX):
            continue
        beta, nu = BETA[case.smoothness], ENTMAX.get(case.rule, np.inf)
        smooth = 2 * beta + case.width
        law = -2 / smooth if np.isinf(nu) else 2 * (beta - nu) / (nu * smooth)
        values = theory.pseudovalues(lambda k: slope_of(k.tuned[..., FAR:], sizes), case)
        out.append(theory.effect(case.label, values - law, case))
    return out


def support_slopes(theory: Road) -> list[Effect]:
    """Slope of log attended keys on log n at the kept temperature less 2ν/(2ν + d)."""
    out = []
    for case in cases(theory):
        if case.rule in ENTMAX:
            nu = ENTMAX[case.rule]
            counts = theory_attended(theory, case)[:, FAR:]
            values = jackknife(
                {"N": counts}, lambda mean: slope_of(np.log(mean["N"]), theory.sizes[FAR:])
            )
            out.append(theory.effect(case.label, values - 2 * nu / (2 * nu + case.width), case))
    return out


def theory_attended(theory: Road, case: Case) -> np.ndarray:
    """Attended keys by theory at the kept temperature, (group, size)."""
    data = keys_of(theory, case, "attended")
    return between(data, theory.logs[case.width][case.source], held(theory, case))


def simulated_attended(simulation: Road, theory: Road, case: Case) -> np.ndarray:
    """Attended keys simulated at theory's kept temperature, (batch, size)."""
    data = of_rule(simulation.data[case.width]["attended"], case)
    at = held(theory, case)[: len(simulation.sizes)]
    return between(data, simulation.logs[case.width][case.source], at)


def attended(simulation: Road, theory: Road) -> list[Effect]:
    """Simulated attended keys over theory's, less 1, at theory's kept temperature."""
    out = []
    for case in cases(simulation):
        if case.rule not in ENTMAX:
            continue
        keys = effective(theory, case)
        own = simulated_attended(simulation, theory, case)
        law = theory_attended(theory, case)[:, : len(simulation.sizes)]
        values = jackknife({"own": own, "law": law}, lambda mean: mean["own"] / mean["law"] - 1)
        out += [
            simulation.effect(
                f"{case.label}, n = {simulation.sizes[i]:g}",
                values[:, i],
                case,
                n_eff=float(keys[i]),
            )
            for i in range(len(simulation.sizes))
        ]
    return out


def sphere(results: Results) -> list[Effect]:
    """Slope of log attended keys on log n less 2ν/(2ν + d_k − 1), keys on the unit sphere."""
    out = []
    for width in results.settings["sphere"]:
        point = f"sphere d_k={width}"
        data = results.estimates[point]["attended_on_sphere"].transpose("batch", "entmax", "size")
        slopes = jackknife(
            {"N": data.values.astype(float)},
            lambda mean, n=data["size"].values: slope_of(np.log(mean["N"]), n),  # type: ignore[misc]
        )
        out += [
            of_batches(f"{point}, {rule}", values - 2 * nu / (2 * nu + int(width) - 1), point)
            for (rule, nu), values in zip(ENTMAX.items(), slopes.T, strict=True)
        ]
    return out


def unequal_road(results: Results) -> Road:
    """Dot products with N(0, I) keys."""
    width, sizes = results.settings["unequal"], np.array(results.settings["sizes"], float)
    point = "unequal norms"
    logs = {width: log_grids(results, "dot", width)}
    return Road("simulation", {width: point}, {width: results.estimates[point]}, sizes, logs)


def unequal_attended(results: Results) -> list[Effect]:
    """Simulated attended keys over those of the law, less 1, at every temperature and size."""
    point, out = "unequal norms", []
    own = results.estimates[point]["attended"]
    law = results.prediction(point)["unequal"]
    for rule in ENTMAX:
        simulated = own.sel(weighed=rule).values.astype(float)
        expected = law.sel(entmax=rule).values
        values = jackknife(
            {"own": simulated, "law": expected}, lambda mean: mean["own"] / mean["law"] - 1
        )
        for i, j in np.ndindex(expected.shape[1:]):
            keys = float(expected[:, i, j].mean())
            facts: dict[str, float | str] = {"keys": keys, "share": keys / float(law["near"][j])}
            out.append(of_batches(f"{rule}, {i}, {j}", values[:, i, j], point, at=facts))
    return out


def unequal_error(results: Results) -> list[Effect]:
    """Share of the error that 16 times the keys remove at a kept temperature."""
    road = unequal_road(results)
    return [
        road.effect(
            case.label,
            road.pseudovalues(lambda k: 1 - k.error[..., LAST] / k.error[..., 0], case),
            case,
        )
        for case in cases(road)
        if case.rule in ENTMAX
    ]


def against(simulation: Road) -> list[Effect]:
    """Error of a kept rule over that of kept 1.5-entmax, less 1, at the largest size."""
    return [
        simulation.effect(
            case.label,
            simulation.pseudovalues(
                lambda own, base: own.error[..., LAST] / base.error[..., LAST] - 1,
                case,
                case._replace(rule="1.5-entmax"),
            ),
            case,
        )
        for case in cases(simulation)
        if case.rule != "1.5-entmax"
    ]


def retuned(simulation: Road, base: str, rules: Sequence[str]) -> list[Effect]:
    """Least error of rules over that of a base, less 1, both re-tuned, at the largest size."""
    return [
        simulation.effect(
            case.label,
            simulation.pseudovalues(
                lambda own, other: own.best[..., LAST] / other.best[..., LAST] - 1,
                case,
                case._replace(rule=base),
            ),
            case,
        )
        for case in cases(simulation)
        if case.rule in rules
    ]


def gap_to_softmax(simulation: Road) -> list[Effect]:
    """1 − error of kept ReLU of the gap over that of kept softmax, at the largest size."""
    return [
        simulation.effect(
            case.label,
            simulation.pseudovalues(
                lambda own, base: 1 - own.error[..., LAST] / base.error[..., LAST],
                case,
                case._replace(rule="softmax"),
            ),
            case,
        )
        for case in cases(simulation)
        if case.rule == "relu gap"
    ]
