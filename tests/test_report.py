"""Captions, numbers for people, and formulas."""

import hashlib
import json

import pytest

from sims import formulas, report
from sims.errors import InputError
from sims.judgement import Verdict
from sims.results import Results

VERDICT = Verdict("angles", "e", "all", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.9, 5, "r")
RESULTS = Results(
    "e", "smoke", {"0": {}}, {"0": type("D", (), {"attrs": {"replicates": 8}})}, {}, {}
)


class Experiment:
    def __init__(self):
        self.settings = {"depth": 3}


def _caption(path, text, numbers=()):
    path.write_text(text, encoding="utf-8")
    return report.render_caption(path, Experiment(), RESULTS, [VERDICT], dict(numbers))


def test_caption_is_filled_in(tmp_path):
    text = "{{ points }} {{ replicates }} {{ fidelity }} {{ settings.depth }} {{ gap | percent }}"
    text += ' {{ verdict("angles").verdict }}'
    assert _caption(tmp_path / "c.md", text, {"gap": 0.0123}) == "1 8 smoke 3 1.2 % supported\n"


@pytest.mark.parametrize("text", ["{{ nothing }}", '{{ verdict("x") }}', "{{ open"])
def test_bad_caption_is_an_input_error(tmp_path, text):
    with pytest.raises(InputError, match=r"c\.md"):
        _caption(tmp_path / "c.md", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (-0.01234, "−0.0123"), (1.5e-16, "1.5·10⁻¹⁶"), (1234.5, "1.23·10³")],
)
def test_numbers_for_people(value, text):
    assert report._significant(value) == text


def test_formulas_are_found_by_anchor(tmp_path, monkeypatch):
    path = tmp_path / "theory.md"
    path.write_text("# T\n\n## First order in 1/n\n\n`a` < b\n\n### Next one\n\nc\n")
    monkeypatch.setattr(formulas, "THEORY", path)
    assert report._formulas(["#first-order-in-1n", "#gone"]) == [
        ("First order in 1/n", "<p><code>a</code> &lt; b</p>\n")
    ]


def test_other_seeds_are_shown_beside_their_own_ledger(tmp_path):
    (tmp_path / "ledger.json").write_text("[1]")
    row = {"claim": "c", "first": "supported", "turned": False}
    found = {
        "ledger": hashlib.sha256(b"[1]").hexdigest(), "judged": 40, "turned": 0, "inconclusive": 3,
        "rows": [row | {"verdicts": {"supported": 20}},
                 row | {"verdicts": {"supported": 17, "inconclusive": 3}}],
    }  # fmt: skip
    assert report._other_seeds(tmp_path, 5) is None
    (tmp_path / "seeds.json").write_text(json.dumps(found))
    sentence, rows = report._other_seeds(tmp_path, 5)
    assert sentence == (
        "Judged again with 20 other seeds each: 2 of 5 verdicts, 40 times in all; 0 turned between "
        "supported and refuted, 3 times one was inconclusive"
    )
    assert rows == found["rows"][1:]
    (tmp_path / "ledger.json").write_text("[2]")
    assert report._other_seeds(tmp_path, 5) is None
