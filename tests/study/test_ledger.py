"""The ledger of a part of a run: as strict as that of the whole."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sims.judgement import Verdict, write_verdicts
from sims.study.ledger import gather

ROW = Verdict("c", "e", "one", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.95, 8, "why", 1e-4)


def test_a_part_of_a_run_counts_the_claims_of_the_whole(tmp_path):
    """One verdict of one experiment: Holm's factor is the number of its paper's tested claims."""
    name = "head_count"
    row = replace(ROW, experiment=name, kind="both roads")
    (tmp_path / name).mkdir()
    write_verdicts([row], tmp_path / name / "verdicts.json", f"verdicts.json of {name} at smoke")
    (found,) = gather(tmp_path, "smoke", tmp_path / "ledger.json")
    files = Path(__file__).parents[2].glob("experiments/*/experiment.yaml")
    own = 0
    for experiment in (yaml.load(f.read_text("utf-8"), yaml.CSafeLoader) for f in files):
        for claim in experiment["claims"]:
            paper = claim.get("paper", experiment.get("paper", row.paper))
            own += paper == row.paper and claim["kind"] in ("both roads", "simulation")
    assert own > 50
    assert found.adjusted == pytest.approx(min(1.0, own * 1e-4))
