"""Protocol of an experiment before it is run, in the fields of the OSF preregistration template.

The words are in ``protocol.md.j2``. No JAX.
"""

import re
from pathlib import Path

from sims.base.files import digest
from sims.judgement import conventions
from sims.report.text import environment
from sims.study.declaration import PUBLISHED_FIDELITY, Declaration
from sims.study.describing import FIELDS, read_variables
from sims.study.papers import papers

TEMPLATE = Path(__file__).with_name("protocol.md.j2")


def protocol(experiment: str | Path) -> str:
    """Protocol of an experiment, given by name or folder, as Markdown.

    Aims, data-generating mechanisms, estimands, methods and performance measures come from
    ``experiment.yaml``, ``variables.yaml`` and the papers' files; nothing is run.

    Raises:
        InputError: there is no such experiment, or its file does not fit the schema.
    """
    declared = Declaration.read(experiment)
    assert declared.folder is not None
    template = environment().from_string(TEMPLATE.read_text("utf-8"))
    text = template.render(
        name=declared.name,
        spec=declared.spec,
        law=declared.law,
        sha=digest(declared.folder / "experiment.yaml"),
        variables=FIELDS | read_variables(declared.folder),
        papers=papers(),
        conventions=conventions,
        published=PUBLISHED_FIDELITY,
    )
    return re.sub("\n{3,}", "\n\n", text)
