"""The page: ledger, experiments and provenance as one HTML file."""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from sims import files
from sims.errors import InputError
from sims.formulas import sections
from sims.judgement import VERDICTS, read_ledger
from sims.judgement.grouping import by_kind, by_paper
from sims.kinds import is_tested
from sims.papers import papers
from sims.report.captions import caption
from sims.report.seeds import other_seeds
from sims.report.text import MARKDOWN, environment
from sims.study.experiment import experiments, load_experiment
from sims.study.results import provenance

TEXTS = (
    ("Data-generating process", "data_generating_process"),
    ("Estimands", "estimands"),
    ("Methods", "methods"),
    ("Performance measures", "performance_measures"),
)
"""The design of a simulation study after its aim (ADEMP): heading, key of the experiment file."""


def write_report(folder: Path, fidelity: str, output: Path, linked: bool = False) -> None:
    """Write the page.

    Args:
        folder: results of one fidelity, with ``ledger.json``, ``audit.json`` if the judgement was
            audited, ``seeds.json`` if other seeds were judged, and a folder for each experiment.
        fidelity: its name.
        output: the HTML file.
        linked: the page shows ``NAME.png`` beside it, instead of carrying the figures in itself.

    Raises:
        InputError: there is no ledger, or no finished experiment.
    """
    ledger = read_ledger(folder / "ledger.json", f"ledger.json of {fidelity}")
    names = [name for name in experiments() if (folder / name / "caption.md").exists()]
    if not names:
        raise InputError(str(folder), "nothing to report", "a run: sims plot, or snakemake")
    specs = {name: load_experiment(name).spec for name in names}
    audit = folder / "audit.json"
    page = environment(html=True).get_template("page.html.j2").render(
        fidelity=fidelity,
        entries=[
            {
                "name": name,
                "title": spec.title,
                "aim": spec.aim,
                "design": [(heading, getattr(spec, key)) for heading, key in TEXTS],
                "formulas": _formulas(dict.fromkeys(c.formula for c in spec.claims)),
                "verdicts": [v for v in ledger if v.experiment == name],
                "rationales": {(c.id, c.regime): c.rationale for c in spec.claims},
                **_made(folder / name, name, fidelity, linked),
            }
            for name, spec in specs.items()
        ],
        ledger=ledger,
        papers=by_paper(ledger, papers()),
        kinds=by_kind(ledger),
        verdicts=VERDICTS,
        formulas={(n, c.id, c.regime): c.formula for n, s in specs.items() for c in s.claims},
        chapters={f"#{anchor}": section.path for anchor, section in sections().items()},
        audit=files.read_json(audit, f"audit.json of {fidelity}") if audit.exists() else None,
        seeds=other_seeds(folder, fidelity, sum(is_tested(v.kind) for v in ledger)),
    )  # fmt: skip
    files.write(page, output, f"report.html of {fidelity}")


def _made(folder: Path, name: str, fidelity: str, linked: bool) -> dict[str, object]:
    """What a run made of an experiment: figure, caption and where the numbers come from."""
    whose = f"{name} at {fidelity}"
    origins = {
        road: provenance(folder / f"{road}.nc", f"{road}.nc of {whose}")
        for road in ("simulation", "theory")
    }
    image = files.read(folder / "figure.png", f"figure.png of {whose}")
    return {
        "figure": f"{name}.png"
        if linked
        else f"data:image/png;base64,{base64.b64encode(image).decode()}",
        "caption": MARKDOWN.render(caption(folder, whose)),
        "provenance": [(road, _rows(origin)) for road, origin in origins.items()],
    }


def _formulas(anchors: Iterable[str]) -> list[tuple[str, str]]:
    """Heading and text, as HTML, of the sections of docs/theory.md that the anchors name."""
    known = sections()
    chosen = [known[a.lstrip("#")] for a in anchors if a.lstrip("#") in known]
    return [(section.heading, MARKDOWN.render(section.body)) for section in chosen]


def _rows(origin: Mapping[str, object]) -> list[tuple[str, str]]:
    """Provenance as rows of text, without the experiment file, which the page shows elsewhere."""
    rows = []
    for key, value in origin.items():
        if key == "specification":
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        text = value if isinstance(value, str) else json.dumps(value)
        rows.append((key.replace("_", " "), text or "none"))
    return rows
