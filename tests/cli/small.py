"""A small problem, an experiment of it, and the command line's exit code."""

from pathlib import Path

import yaml

from sims.base.documents import mapping
from sims.cli import main

SPEC = yaml.safe_load("""
problem:
  dimension: 4
  design: {kind: isotropic}
  target: {kind: rbf, lengthscale: 2.0, features: 4}
  noise_sd: 0.5
  heads: {count: 2, width: 1, frames: {kind: equiangular, angle: 45}, bandwidth: 0.7}
  n: 64
  queries: {kind: gaussian, count: 4, scale: 0.5}
simulation: {replicates_per_batch: 8, batches: 4, precision: float64}
""")
EXPERIMENT = yaml.safe_load("""
title: T
aim: A
law:
  text: Bandwidths of 0.7 to 0.9.
  heads.bandwidth: {uniform: [0.7, 0.9]}
settings: {problems: 3}
fidelities: {smoke: {}, standard: {}, paper: {}}
questions:
  - id: gaps
    claim: decomposition
    question: Do the mean squared errors agree?
    asks: gap
    effect: mse
    tolerance: methods
    status: confirmatory
""")
EXPERIMENT["law"]["problem"] = SPEC["problem"]
EXPERIMENT["simulation"] = SPEC["simulation"]
OWN = {
    "study.py": """
from sims import figures
from sims.study.drawn import DrawnStudy


class Small(DrawnStudy):
    def figure(self, panels, answers):
        drawing, axes = figures.panels(1, 1, width=figures.COLUMN, title=next(iter(answers)))
        figures.log_axes(axes[0, 0], x=True, y=True)
        return drawing

    def effects(self, results):
        return super().effects(results)

    def numbers(self, panels):
        return {"least": panels.effects["mse"].value.min()}
""",
    "caption.md": """**Seen** {{ least | significant }} at {{ fidelity }}
{{ answers.gaps.result.tolerance | percent }}""",
}
"""Files of a variant with its own effects, figure and caption."""
HOST = """
import xarray as xr

from sims.montecarlo import HostReplicates
from sims.study.study import Study
from sims.study.units import SampledUnit


def draw(draw, scale, batch):
    return {"mse": scale * draw.rng().uniform()}


class Host(Study):
    def units(self):
        return {f"{k}": SampledUnit(HostReplicates(draw, constants=k), {"k": k}) for k in (1, 2, 3)}

    def predictions(self):
        return {f"{k}": xr.Dataset({"mse": k / 2}) for k in (1, 2, 3)}

    def problem_digests(self):
        return {}
"""


def write(own=(), **changes) -> Path:
    """The experiment in the working directory, with files of its own and other settings."""
    folder = Path("experiments/small")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT | changes))
    for name, text in dict(own).items():
        (folder / name).write_text(text)
    return folder


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


def typed(value):
    """The value of a text as a user types it into a file; other values stay."""
    return mapping(f"value: {value}", "typed")["value"] if isinstance(value, str) else value


def refused(capsys, recwarn, words, *arguments):
    """Assert that a command ends in one line with these words, and does nothing."""
    before = set(Path().rglob("*"))
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), list(recwarn)) == ("", 1, [])
    assert err[:-1].isprintable()
    assert words in err, err
    assert set(Path().rglob("*")) == before
