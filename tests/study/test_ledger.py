"""The ledger of a part of a run: as strict as that of the whole."""

from dataclasses import replace

import pytest
import yaml

from sims.judgement import Verdict, write_verdicts
from sims.study.experiment import experiments, load_experiment
from sims.study.ledger import gather

ROW = Verdict("c", "e", "one", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.95, 8, "why", 1e-4)


def test_a_part_of_a_run_counts_the_claims_of_the_whole(tmp_path):
    """One verdict of one experiment: Holm's factor is the number of its paper's tested claims."""
    name = "head_count"
    row = replace(ROW, experiment=name, kind="both roads")
    (tmp_path / name).mkdir()
    write_verdicts([row], tmp_path / name / "verdicts.json", f"verdicts.json of {name} at smoke")
    (found,) = gather(tmp_path, "smoke", tmp_path / "ledger.json")
    texts = [(load_experiment(e).folder / "experiment.yaml").read_text() for e in experiments()]
    claims = [
        (yaml.safe_load(t).get("paper"), c) for t in texts for c in yaml.safe_load(t)["claims"]
    ]
    own = [
        claim
        for paper, claim in claims
        if claim["kind"] in ("both roads", "simulation")
        and claim.get("paper", paper) in (None, row.paper)
    ]
    assert len(own) > 50
    assert found.adjusted == pytest.approx(min(1.0, len(own) * 1e-4))
