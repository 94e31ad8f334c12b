"""The published tables as CSV, a row per problem, with their codebook: ``make archive``.

The codebook's words are in ``codebook.md.j2``, and in experiment.yaml and variables.yaml.
"""

import sys
from pathlib import Path

import pandas as pd

from sims.judgement.table import Table
from sims.report.text import environment
from sims.study.declaration import Declaration
from sims.study.describing import read_variables
from sims.study.results import read

TEMPLATE = Path(__file__).with_name("codebook.md.j2")


def write(published: Path, target: Path) -> None:
    """Write the tables of a published run, and the codebook."""
    sections = []
    for path in sorted(published.glob("*/effects.nc")):
        data = read(path)
        table = Table.of(data)
        declared = Declaration.read(path.parent.name)
        labels = data[["effect", "quantity", "pair", "rows"]].to_dataframe()
        labels = labels[labels["rows"] > 0]
        pair = (labels["pair"] + 1).map(", pair {}".format).where(labels["pair"] >= 0, "")
        names = labels["effect"] + ": " + labels["quantity"] + pair
        numbers = pd.DataFrame(data["number"].values[labels.index].T, columns=names)
        frame = pd.concat([table.parameters, numbers], axis=1)
        output = target / f"{declared.name}.csv.gz"
        frame.to_csv(output, index_label="problem", compression={"method": "gzip", "mtime": 0})
        variables = read_variables(declared.folder)
        sections.append((declared, variables, table, labels.to_dict("records")))
    template = environment().from_string(TEMPLATE.read_text("utf-8"))
    (target / "codebook.md").write_text(template.render(sections=sections), encoding="utf-8")


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
