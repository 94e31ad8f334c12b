"""Captions, numbers for people, and formulas."""

import hashlib
from dataclasses import replace
from html import unescape

import pytest
import xarray as xr

from sims import formulas
from sims.errors import InputError
from sims.files import write, write_json
from sims.judgement import VERDICTS, Verdict, write_verdicts
from sims.judgement.grouping import by_kind, by_paper
from sims.papers import MAIN, PaperClaim, papers
from sims.report import page, render_caption, write_overview
from sims.report.seeds import other_seeds
from sims.report.text import environment, significant
from sims.study.experiment import load_experiment
from sims.study.results import Results

VERDICT = Verdict("angles", "e", "all", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.9, 5, "r")
DATA = {"0": xr.Dataset(attrs={"replicates": 8})}
RESULTS = Results("e", "smoke", DATA, {}, {"depth": 3}, {"0": {}}, {}, {})


def _caption(path, text, numbers=()):
    path.write_text(text, encoding="utf-8")
    return render_caption(path, RESULTS, [VERDICT], dict(numbers))


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
    assert significant(value) == text


def test_formulas_are_found_by_anchor(tmp_path, monkeypatch):
    path = tmp_path / "theory.md"
    path.write_text("# T\n\n## First order in 1/n\n\n`a` < b\n\n### Next one\n\nc\n")
    monkeypatch.setattr(formulas, "THEORY", path)
    assert page._formulas(["#first-order-in-1n", "#gone"]) == [
        ("First order in 1/n", "<p><code>a</code> &lt; b</p>\n")
    ]


def test_other_seeds_are_shown_beside_their_own_ledger(tmp_path):
    (tmp_path / "ledger.json").write_text("[1]")
    row = {
        "claim": "c", "experiment": "e", "regime": "r", "first": "supported", "turned": False,
    }  # fmt: skip
    found = {
        "ledger": hashlib.sha256(b"[1]").hexdigest(), "judged": 40, "turned": 0, "inconclusive": 3,
        "redrawn": False,
        "rows": [row | {"verdicts": {"supported": 20}},
                 row | {"verdicts": {"supported": 17, "inconclusive": 3}}],
    }  # fmt: skip
    assert other_seeds(tmp_path, "smoke", 5) is None
    write_json(found, tmp_path / "seeds.json", "seeds.json of smoke")
    sentence, rows = other_seeds(tmp_path, "smoke", 5)
    assert sentence == (
        "Judged again with 20 other draws of the same problems each: 2 of 5 verdicts that draws "
        "could have turned, 40 times in all; 0 turned between supported and refuted, 3 times one "
        "was inconclusive"
    )
    assert rows == found["rows"][1:]
    (tmp_path / "ledger.json").write_text("[2]")
    assert other_seeds(tmp_path, "smoke", 5) is None


OTHER = "2601.00001"
"""A paper whose file the working directory does not have."""


def test_verdicts_are_grouped_by_paper():
    """The paper's claims in its file's order, ours apart, and no row is lost."""
    ledger = [
        replace(VERDICT, claim="rates"),
        VERDICT,
        replace(VERDICT, claim="gone"),
        replace(VERDICT, claim="angles", paper=OTHER, experiment="f"),
        replace(VERDICT, experiment="g"),
    ]
    known = {MAIN: papers()[MAIN]}
    first, second = by_paper(ledger, known)
    assert (first.arxiv, first.about) == (MAIN, known[MAIN])
    assert [row.id for row in first.claims] == [claim.id for claim in known[MAIN].claims]
    (angles,) = (row for row in first.claims if row.verdicts)
    assert angles.by_experiment() == {"e": [VERDICT], "g": [ledger[4]]}
    assert angles.source == "abstract"
    assert len(first.uncovered()) == len(first.claims) - 1
    assert [row.id for row in first.ours if row.verdicts] == ["rates", "gone"]
    assert not any(row.source for row in first.ours)
    assert (second.arxiv, second.about, second.ours) == (OTHER, None, [])
    assert [row.verdicts for row in second.claims] == [[ledger[3]]]


def test_page_and_overview_have_a_section_for_each_paper(tmp_path, monkeypatch):
    ledger = [
        replace(VERDICT, kind="both roads", over=["queries", "seeds"]),
        replace(VERDICT, claim="rates", edited=True, kind="program", over=[]),
        replace(VERDICT, paper=OTHER, kind="theory", verdict="inconclusive"),
    ]
    write_verdicts(ledger, tmp_path / "ledger.json", "ledger.json of smoke")
    monkeypatch.setattr("sims.report.overview.experiments", list)
    known = {MAIN: papers()[MAIN]}
    monkeypatch.setattr("sims.report.overview.papers", lambda: known)
    write_overview(tmp_path, "smoke", tmp_path / "README.md")
    overview = (tmp_path / "README.md").read_text(encoding="utf-8")
    head, main, other = overview.split("## Claims of arXiv ")
    assert "| both roads | 1 | 0 | 0 |\n| theory | 0 | 0 | 1 |\n| program | 1 | 0 | 0 |" in head
    assert "| `angles` | e | 1 | 0 | 0 |  |" in main
    paper = papers()[MAIN]
    assert main.startswith(f"{MAIN}\n")
    assert paper.title in main
    assert main.index("| `angles`") < main.index("Our own claims") < main.index("| `rates`")
    assert "(supported, edited after the simulation began)" in main.split("Our own claims")[1]
    assert "Not covered: `identity`, " in main
    assert other.startswith(f"{OTHER}\n")
    assert "| `angles` | e | 0 | 0 | 1 | all (open) |" in other
    assert "edited" not in other

    text = environment(html=True).get_template("page.html.j2").render(
        fidelity="smoke", entries=[], ledger=ledger, papers=by_paper(ledger, known),
        kinds=by_kind(ledger), verdicts=VERDICTS, formulas={}, audit=None, seeds=None,
    )  # fmt: skip
    first, second = text.split('<section aria-labelledby="arxiv-')[1:]
    assert first.index(">angles<") < first.index("Our own claims") < first.index(">rates<")
    assert first.count('class="row"') == 2
    assert second.count('class="row"') == 1
    assert text.count("edited after the simulation began") == 1
    angles = next(claim for claim in paper.claims if claim.id == "angles")
    assert isinstance(angles, PaperClaim)
    assert f"The paper (abstract): {angles.statement}" in first
    assert angles.reconstruction in unescape(first)
    assert "13 of 15 claims of papers not covered" in text
    assert "both roads: 1 supported; theory: 1 inconclusive; program: 1 supported" in text
    assert "<dd>both roads over queries, seeds</dd>" in first


def test_page_shows_an_experiment_with_its_design(tmp_path, monkeypatch):
    """Title, design, caption without its HTML, provenance without the experiment file."""
    home = tmp_path / "decomposition"
    home.mkdir()
    whose = "decomposition at smoke"
    write("**Seen** <script>x</script>", home / "caption.md", f"caption.md of {whose}")
    write(b"png", home / "figure.png", f"figure.png of {whose}")
    origin = {"specification": {"no": "where"}, "versions": {"jax": "1"}, "xla_flags": ""}
    monkeypatch.setattr(page, "provenance", lambda *_: origin)
    row = replace(VERDICT, claim="decomposition", experiment="decomposition")
    write_verdicts([row], tmp_path / "ledger.json", "ledger.json of smoke")
    monkeypatch.setattr(page, "experiments", list)
    with pytest.raises(InputError, match="nothing to report"):
        page.write_report(tmp_path, "smoke", tmp_path / "report.html")
    monkeypatch.setattr(page, "experiments", lambda: ["decomposition"])
    page.write_report(tmp_path, "smoke", tmp_path / "report.html", linked=True)
    text = unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    spec = load_experiment("decomposition").spec
    for words in (spec.title, spec.aim, spec.estimands, "<strong>Seen</strong>", "jax 1"):
        assert words in text
    assert 'src="decomposition.png"' in text
    assert "<dt>xla flags</dt><dd>none</dd>" in text
    assert "where" not in text.split("Provenance")[-1]
