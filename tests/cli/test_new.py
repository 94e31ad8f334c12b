"""``sims new``: the example of the guide, under a name of one's own."""

import re
from pathlib import Path

import pytest

from sims.cli import main
from sims.study.experiment import load_experiment

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")


def test_it_is_the_guides_example(tmp_path, monkeypatch, capsys):
    """Which is executed by the tests of the guide."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_question"]) == 0
    folder = tmp_path / "experiments/my_question"
    pattern = r"^```\w+ file=experiments/noise_level/(\S+)\n(.*?)^```$"
    blocks = dict(re.findall(pattern, GUIDE, re.MULTILINE | re.DOTALL))
    assert set(blocks) == {"experiment.yaml", "effects.py", "figure.py", "caption.md"}
    for name, text in blocks.items():
        assert (folder / name).read_text(encoding="utf-8") == text
    assert load_experiment("my_question", "smoke").claims
    assert "sims run my_question --fidelity smoke" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["My", "my-question", "../up", "2nd", "class", "f\u00fcr"])
def test_a_name_that_cannot_be_imported_is_refused(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments/mine").mkdir(parents=True)
    assert main(["new", "mine"]) == 2
    assert "one that is no folder of experiments/ yet" in capsys.readouterr().err
    assert list((tmp_path / "experiments/mine").iterdir()) == []
