"""The page: answers, findings, verdicts, claims, theory and provenance as one HTML file."""

import base64
import hashlib
from collections import Counter
from pathlib import Path

from markupsafe import Markup

from sims import files
from sims.errors import InputError
from sims.formulas import sections
from sims.judgement import VERDICTS
from sims.judgement.grouping import by_kind, by_paper
from sims.kinds import is_tested
from sims.papers import papers
from sims.report.answers import table
from sims.report.findings import finding
from sims.report.origins import origins
from sims.report.text import environment, html
from sims.study.experiment import experiments, load_experiment
from sims.study.ledger import read_run

FIRST = "house"
"""The experiment whose figure opens the page, if there is one of it."""


def write_report(folder: Path, fidelity: str, output: Path) -> None:
    """Write the page, which needs nothing beside it and loads nothing.

    Args:
        folder: results of one fidelity, with ``ledger.json``, ``answers.json`` or both, and a
            folder for each experiment.
        fidelity: its name.
        output: the HTML file.

    Raises:
        InputError: there is no ledger, or no finished experiment.
    """
    ledger, answers = read_run(folder, fidelity)
    names = [name for name in experiments() if (folder / name / "caption.md").exists()]
    if not names:
        raise InputError(str(folder), "nothing to report", "results of a finished run")
    specs = {name: load_experiment(name).spec for name in names}
    claims = {
        (name, c.paper, c.id, c.regime): c for name, spec in specs.items() for c in spec.claims
    }
    anchors = {claim.formula.lstrip("#") for claim in claims.values()}
    theory = {anchor: section for anchor, section in sections().items() if anchor in anchors}

    def inside(target: str) -> str | None:
        """The id in the page of a section of the theory, whatever chapter a link names it in."""
        path, _, anchor = target.partition("#")
        known = anchor in theory and (not path or path.endswith(".md"))
        return f"theory-{anchor}" if known else None

    def here(target: str) -> str | None:
        """The id of a finding."""
        return target[1:] if target[0] == "#" else None

    findings = [
        finding(
            spec,
            folder / name,
            f"{name} at {fidelity}",
            [v for v in ledger if v.experiment == name],
            inside,
        )
        for name, spec in specs.items()
    ]
    theory_of: dict[tuple[str, str], dict[str, None]] = {}
    for claim in claims.values():
        if id := inside(claim.formula):
            theory_of.setdefault((claim.paper, claim.id), {})[id] = None
    groups = []
    for paper in by_paper(ledger, papers(), answers):
        counts = Counter(v.verdict for row in (*paper.claims, *paper.ours) for v in row.verdicts)
        own = [f for f in findings if f.spec.paper == paper.arxiv]
        if counts or own:
            groups.append({"paper": paper, "counts": counts, "findings": own})

    templates = environment(html=True)
    script = templates.get_template("table.js.j2").render()
    page = templates.get_template("page.html.j2").render(
        fidelity=fidelity,
        ledger=ledger,
        answers=answers and html(table(answers, "#{}"), here),
        verdicts=VERDICTS,
        counts=Counter(v.verdict for v in ledger),
        kinds=by_kind(ledger),
        groups=groups,
        first=next((f for f in findings if f.name == FIRST), findings[0]),
        claims=claims,
        theory=[(inside(f"#{a}"), s, html(s.body, inside)) for a, s in theory.items()],
        theory_of=theory_of,
        tested=is_tested,
        origins=origins(folder, names, fidelity),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    files.write(page, output, f"report.html of {fidelity}")
