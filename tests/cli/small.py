"""A small problem, an experiment of it, and the command line's exit code."""

from sims.cli import main
from sims.study.code import FIDELITIES

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
    "title": "T", "aim": "A", "data_generating_process": "D", "estimands": "E", "methods": "M",
    "performance_measures": "P", "problem": SPEC["problem"],
    "grid": [{"heads.bandwidth": [0.7, 0.9]}], "simulation": SPEC["simulation"],
    "fidelities": {name: {} for name in FIDELITIES},
    "claims": [{"id": "decomposition", "statement": "The mean squared errors agree.",
                "kind": "both roads", "over": ["seeds"],
                "test": "equivalence", "effects": "gaps", "margin": 0.5,
                "formula": "#the-decomposition"}],
}  # fmt: skip
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


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
