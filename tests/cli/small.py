"""A small problem, an experiment of it, and the command line's exit code."""

from sims.cli import main

SPEC = {
    "problem": {
        "dimension": 4,
        "design": {"kind": "isotropic"},
        "target": {"kind": "rbf", "lengthscale": 2.0, "features": 4},
        "noise_sd": 0.5,
        "heads": {
            "count": 2,
            "width": 1,
            "frames": {"kind": "equiangular", "angle": 45},
            "bandwidth": 0.7,
        },
        "n": 64,
        "queries": {"kind": "gaussian", "count": 4, "scale": 0.5},
    },
    "simulation": {"replicates_per_batch": 8, "batches": 4, "precision": "float64"},
}
EXPERIMENT = {
    "title": "T",
    "aim": "A",
    "data_generating_process": "D",
    "estimands": "E",
    "methods": "M",
    "performance_measures": "P",
    "problem": SPEC["problem"],
    "grid": [{"heads.bandwidth": [0.7, 0.9]}],
    "simulation": SPEC["simulation"],
    "fidelities": {"smoke": {}, "standard": {}, "paper": {}},
    "claims": [
        {
            "id": "decomposition",
            "statement": "The mean squared errors agree.",
            "kind": "both roads",
            "over": ["seeds"],
            "test": "equivalence",
            "effects": "gaps",
            "margin": 0.5,
            "formula": "#the-decomposition",
        }
    ],
}
EFFECTS = """
from sims.effects import of_batches

def effects(results):
    values = {p: results.estimates[p]["mse"].values for p in results.points}
    theory = {p: float(results.prediction(p)["mse"]) for p in results.points}
    return {"gaps": [of_batches(p, v / theory[p] - 1, p) for p, v in values.items()]}
"""
FIGURE = """
from sims import figures

def figure(results, verdicts):
    table = results.table()
    drawing, axes = figures.panels(1, 1, width=figures.COLUMN)
    figures.theory(axes[0, 0], table["heads.bandwidth"], table["mse_theory"])
    figures.simulated(axes[0, 0], table["heads.bandwidth"], table["mse"], table["mse_mcse"])
    figures.log_axes(axes[0, 0], x=True, y=True)
    return drawing

def numbers(results):
    return {"least": float(results.table()["mse"].min())}
"""
CAPTION = """**Seen** {{ points }} points; {{ least | significant }}
{{ verdict("decomposition").verdict }}"""
HOST = """
from sims.montecarlo import HostReplicates
from sims.study.units import SampledUnit


def draw(draw, scale, batch):
    return {"mse": scale * draw.rng().uniform()}


def units(experiment):
    return {f"{k}": SampledUnit(HostReplicates(draw, constants=k), {"k": k}) for k in (1, 2, 3)}
"""


def run(*arguments: str) -> int:
    return main(arguments)


def changed(data, path, value):
    """A copy of nested data with the value at a dotted path."""
    first, _, rest = path.partition(".")
    if isinstance(data, list):
        return [
            changed(item, rest, value) if str(i) == first else item for i, item in enumerate(data)
        ]
    return {**data, first: changed(data.get(first, {}), rest, value) if rest else value}
