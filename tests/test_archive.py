"""Protocols of experiments, and the published tables with their codebook."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.archive.write import write
from sims.base.places import experiments
from sims.judgement.table import Table
from sims.report.protocol import protocol
from sims.report.text import escape_markdown
from sims.study.declaration import Declaration
from sims.study.results import read
from tests.cli import small
from tests.cli.conftest import folder  # noqa: F401
from tests.pipeline import ROOT

PUBLISHED = ROOT / "results/published"


@pytest.mark.parametrize("name", experiments())
def test_a_protocol_says_what_the_file_says(name):
    text = protocol(name)
    declared = Declaration.read(name)
    for question in declared.spec.questions:
        for said in (question.question, *question.strata):
            assert escape_markdown(said) in text
    for field in declared.law:
        assert f"| `{field}` |" in text
    assert "The salt is drawn at publication. It protects the draws" in text
    assert not re.search(r"\b(None|True|False)\b|\{'|  \n", text)


def test_a_change_of_the_file_changes_the_protocol(folder):  # noqa: F811
    assert small.run("protocol", "--output", "all.md") == 0
    before = Path("all.md").read_text("utf-8")
    assert "explicit bias–variance–covariance decomposition" in before  # as the paper's file says
    assert "| `heads.bandwidth` | bandwidth of the heads | uniform, 0.7 to 0.9 |" in before
    small.write(aim="To see.", simulation={"batches": 7, "replicates_per_batch": 3})
    after = protocol("small")
    assert "- `paper` (published): problems 3, 7 batches of 3 replicates." in after


def test_the_archive_has_every_number_and_a_word_on_each(tmp_path):
    write(PUBLISHED, tmp_path)
    codebook = (tmp_path / "codebook.md").read_text("utf-8")
    for name in experiments():
        frame = pd.read_csv(tmp_path / f"{name}.csv.gz", index_col="problem")
        table = Table.of(read(PUBLISHED / name / "effects.nc"))
        for effect, effects in table.effects.items():
            numbers = frame.filter(regex=f"^{re.escape(effect)}: value")
            simulated = numbers[: len(effects.value)].to_numpy()
            np.testing.assert_allclose(simulated.ravel(), effects.value.ravel(), rtol=1e-6)
        for column in frame:
            described = escape_markdown(re.sub(", pair [0-9]+$", "", column))
            assert re.search(rf"^\| `?{re.escape(described)}", codebook, re.M), column
