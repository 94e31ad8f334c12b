"""Captions, numbers for people, and formulas."""

import hashlib
import io
import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import pytest
import xarray as xr
from PIL import Image

from sims import formulas
from sims.errors import InputError
from sims.files import write, write_json
from sims.judgement import Verdict, write_verdicts
from sims.judgement.grouping import by_paper
from sims.papers import MAIN, papers
from sims.report import page, render_caption, write_overview
from sims.report.findings import sentence
from sims.report.pictures import interval
from sims.report.seeds import other_seeds
from sims.report.seen import seen
from sims.report.text import percent, significant
from sims.report.theory import chapters
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


@pytest.mark.parametrize("text", ["{{ nothing }}", '{{ verdict("x") }}', "{{ open", r"$\no$"])
def test_bad_caption_is_an_input_error(tmp_path, text):
    with pytest.raises(InputError, match=r"c\.md"):
        _caption(tmp_path / "c.md", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (-0.01234, "−0.0123"), (1.5e-16, "1.5·10⁻¹⁶"), (1234.5, "1.23·10³")],
)
def test_numbers_for_people(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0123, "1.2 %"), (-0.5, "−50 %"), (0.999, "100 %"), (-5.83, "−580 %"),
     (173.0, "1.7·10⁴ %")],
)  # fmt: skip
def test_shares_for_people(value, text):
    assert percent(value) == text


def test_sections_of_the_theory_link_within_the_page(tmp_path, monkeypatch):
    """Formulas in both notations; a link leads to a section that is there, or is words."""
    path = tmp_path / "theory.md"
    path.write_text(
        "# T\n\n## First order in 1/n\n\n`a` < $b_1$, [here](#next-one), [gone](#gone), "
        "[code](../sims/x.py), ![p](p.png)\n\n### Next one\n\n[back](theory.md#first-order-in-1n)\n"
    )
    monkeypatch.setattr(formulas, "THEORY", path)
    (chapter,) = chapters(["first-order-in-1n", "next-one", "gone"])
    assert chapter.sections == [
        ("theory-first-order-in-1n", "First order in 1/n",
         "<p><code>a</code> &lt; <math><msub><mi>b</mi><mn>1</mn></msub></math>, "
         '<a href="#theory-next-one">here</a>, gone, code, p</p>\n'),
        ("theory-next-one", "Next one", '<p><a href="#theory-first-order-in-1n">back</a></p>\n'),
    ]  # fmt: skip


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
    assert [row.id for row in first.ours if row.verdicts] == ["rates", "gone"]
    assert not any(row.source for row in first.ours)
    assert (second.arxiv, second.about, second.ours) == (OTHER, None, [])
    assert [row.verdicts for row in second.claims] == [[ledger[3]]]


def test_overview_has_a_row_for_each_paper(tmp_path, monkeypatch):
    ledger = [
        replace(VERDICT, kind="both roads", over=["queries", "seeds"]),
        replace(VERDICT, claim="rates", edited=True, kind="program", over=[]),
        replace(VERDICT, kind="program", over=[], verdict="refuted"),
        replace(VERDICT, paper=OTHER, kind="theory", verdict="inconclusive"),
    ]
    write_verdicts(ledger, tmp_path / "ledger.json", "ledger.json of smoke")
    monkeypatch.setattr("sims.report.overview.experiments", list)
    known = {MAIN: papers()[MAIN]}
    monkeypatch.setattr("sims.report.overview.papers", lambda: known)
    write_overview(tmp_path, "smoke", tmp_path / "README.md")
    overview = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| both roads | 1 | 0 | 0 |\n| theory | 0 | 0 | 1 |\n| program | 1 | 1 | 0 |" in overview
    main, other = [line for line in overview.splitlines() if "arxiv.org" in line]
    assert main.startswith(f"| *{papers()[MAIN].title}*, ")
    assert "`identity` not covered; " in main
    own = "`angles` 1 ✓ and by algebra 1 ✗; "
    assert main.index(own) < main.index("*rates* by algebra 1 ✓")
    assert other == f"| [{OTHER}](https://arxiv.org/abs/{OTHER}) | `angles` 1 ? |"
    assert "1 of them were edited after the simulation began." in overview


def test_other_seeds_judge_of_the_ledger_what_draws_could_turn(tmp_path, monkeypatch):
    """Two rows of six: neither algebra, nor theory by itself, is of those that are counted."""
    kinds = ["program", "program", "program", "theory", "both roads", "simulation"]
    ledger = [replace(VERDICT, kind=kind, regime=f"{i}") for i, kind in enumerate(kinds)]
    write_verdicts(ledger, tmp_path / "ledger.json", "ledger.json of smoke")
    found = {
        "ledger": hashlib.sha256((tmp_path / "ledger.json").read_bytes()).hexdigest(),
        "judged": 20, "turned": 0, "inconclusive": 0, "redrawn": True,
        "rows": [{"claim": "angles", "experiment": "e", "regime": "4", "first": "supported",
                  "turned": False, "verdicts": {"supported": 20}}],
    }  # fmt: skip
    write_json(found, tmp_path / "seeds.json", "seeds.json of smoke")
    monkeypatch.setattr("sims.report.overview.experiments", list)
    write_overview(tmp_path, "smoke", tmp_path / "README.md")
    overview = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert " 1 of 2 verdicts that draws could have turned, 20 times in all;" in overview


def _seen(experiment="decomposition"):
    """An experiment of whose rows the second had been seen before, and its rows' verdicts."""
    loaded = load_experiment(experiment)
    first, second, *others = (c.model_copy(update={"seen_before": ""}) for c in loaded.claims)
    second = second.model_copy(update={"seen_before": "At <seed 7> it was open."})
    changes = {"seen_before": "A run at seed 7 & 8.", "claims": [first, second, *others]}
    spec = loaded.spec.model_copy(update=changes)
    rows = [
        replace(VERDICT, claim=c.id, regime=c.regime, paper=c.paper, experiment=experiment)
        for c in spec.claims
    ]
    return replace(loaded, spec=spec), rows


def test_rows_that_had_been_seen_are_counted(tmp_path, monkeypatch):
    """Those of the ledger, of the experiment that says so; the overview has the same number."""
    experiment, rows = _seen()
    specs = {"decomposition": experiment.spec}
    told = "1 of these rows had been seen, in part, before their margin, points or wording were"
    assert seen(rows, specs) == f"{told} fixed; each says so."
    assert seen(rows[:1], specs) == ""
    assert seen([replace(row, experiment="angles") for row in rows], specs) == ""
    assert seen([replace(row, regime="another") for row in rows], specs) == ""
    monkeypatch.setattr("sims.report.overview.experiments", lambda: ["decomposition", "angles"])
    monkeypatch.setattr("sims.report.overview.load_experiment", lambda _: experiment)
    write_verdicts(rows, tmp_path / "ledger.json", "ledger.json of smoke")
    write_overview(tmp_path, "smoke", tmp_path / "README.md")
    overview = (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()
    assert f"{told} fixed; each says so in [report.html](report.html)." in overview
    write_verdicts(rows[:1], tmp_path / "ledger.json", "ledger.json of smoke")
    write_overview(tmp_path, "smoke", tmp_path / "README.md")
    assert "had been seen" not in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_sentences_say_how_many_where_not_and_how_sure():
    tested = replace(VERDICT, kind="simulation", adjusted=0.012)
    no = [replace(VERDICT, regime=name, verdict="refuted") for name in "abcd"]
    sure = [replace(tested, adjusted=p) for p in (0.001, 0.03, 0.002)]
    assert "turned 3 of these verdicts: the least sure has p\xa0=\xa00.03 " in sentence(sure)
    assert sentence([tested]) == (
        "Supported in the one regime tried. Draws could have turned 1 of these verdicts: the least "
        "sure has p\xa0=\xa00.012 among all tested claims of its paper."
    )
    assert sentence(
        [replace(VERDICT, kind="program"), *(replace(v, kind="theory") for v in no)]
    ) == ("Supported in 1, refuted in 4 of 5 regimes tried. Refuted: a; b; c and 1 more.")
    open_row = replace(VERDICT, kind="theory", verdict="inconclusive", regime="x")
    assert sentence([open_row]) == "Open in the one regime tried."
    assert sentence([]) == "No verdict yet."


@pytest.mark.parametrize(
    ("test", "band", "named"),
    [("equivalence", "x=22 width=216", 130), ("bound", "x=0 width=238", 130),
     ("ordering", "x=238 width=22", 238), ("law", "x=238 width=22", 238)],
)  # fmt: skip
def test_an_interval_is_drawn_over_what_its_claim_allows(test, band, named):
    """From −1 to 1, at a margin of 1, on 260 pixels with a tenth of the range beside it."""
    claim = SimpleNamespace(test=test, margin=1.0, expected=None)
    row = replace(VERDICT, kind="simulation", effect=0.0, interval=(-1.0, 1.0), margin=1.0)
    picture = interval(row, claim)
    assert f"<rect {band} " in picture
    assert 'd="M22 11H238"' in picture
    assert "<circle cx=130 " in picture
    assert f'd="M{named} 0v22"' in picture
    assert interval(replace(row, kind="program"), claim) == ""
    assert "class=i" not in interval(replace(row, interval=(0.0, 0.0)), claim)


def _results(folder, monkeypatch, name="decomposition", rows=(), caption="**Seen** $x_1$"):
    """Results of one experiment, as far as the page reads them."""
    whose = f"{name} at smoke"
    write(caption, folder / name / "caption.md", f"caption.md of {whose}")
    image = io.BytesIO()
    Image.new("RGB", (1200, 600), "white").save(image, "PNG")
    write(image.getvalue(), folder / name / "figure.png", f"figure.png of {whose}")
    origin = {"specification": {"no": "where"}, "versions": {"jax": "1"}, "xla_flags": ""}
    monkeypatch.setattr("sims.report.origins.provenance", lambda *_: origin)
    row = replace(VERDICT, claim="decomposition", experiment=name, kind="simulation")
    write_verdicts(rows or [row], folder / "ledger.json", "ledger.json of smoke")


def test_page_shows_an_experiment_with_its_design(tmp_path, monkeypatch):
    """Title, design, caption without its HTML and table, provenance without the experiment file."""
    caption = (
        "**Seen** <script>x</script> <b>y</b>\n\n| claim | where | verdict | effect | margin |\n"
        "|---|---|---|---|---|\n| `decomposition` | nowhere | supported | 1 | 2 |\n"
    )
    (tmp_path / "decomposition").mkdir()
    _results(tmp_path, monkeypatch, caption=caption)
    monkeypatch.setattr(page, "experiments", list)
    with pytest.raises(InputError, match="nothing to report"):
        page.write_report(tmp_path, "smoke", tmp_path / "report.html")
    monkeypatch.setattr(page, "experiments", lambda: ["decomposition"])
    page.write_report(tmp_path, "smoke", tmp_path / "report.html")
    raw = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>y" not in raw
    assert raw.count("<script>") == 1
    text = unescape(raw)
    spec = load_experiment("decomposition").spec
    for words in (spec.aim, spec.estimands, ">Seen</h2>", "jax 1", spec.claims[0].rationale):
        assert words in text
    assert "nowhere" not in text
    assert 'src="data:image/' in text
    assert "<dt>xla flags</dt><dd>none</dd>" in text
    assert "where" not in text.split('id="the-provenance"')[-1].split("<script>")[0]


def test_exact_checks_have_neither_interval_nor_p_value(tmp_path, monkeypatch):
    row = replace(VERDICT, claim="decomposition", experiment="decomposition", p_value=0.01234)
    rows = [
        replace(row, kind="program", reason="largest gap of 3"),
        replace(row, kind="simulation"),
    ]
    (tmp_path / "decomposition").mkdir()
    _results(tmp_path, monkeypatch, rows=rows)
    monkeypatch.setattr(page, "experiments", lambda: ["decomposition"])
    page.write_report(tmp_path, "smoke", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    _, exact, tested = text.split("<tbody>")[1].split("<tr class=")
    assert "Exact check: largest gap of 3." in exact
    assert not {word for word in ("0.012", "[0, 0.2]", "<svg", "p =") if word in exact}
    assert all(word in tested for word in ("p = 0.012", "[0, 0.2]", "margin 0.3"))


def test_a_page_links_to_nothing_beside_it(tmp_path, monkeypatch):
    """Every link leads to an element of the page or to the paper; every element's id is its own."""
    (tmp_path / "decomposition").mkdir()
    caption = "**Seen** [theory](../../docs/theory.md#the-decomposition), [file](x.md)"
    _results(tmp_path, monkeypatch, caption=caption)
    monkeypatch.setattr(page, "experiments", lambda: ["decomposition"])
    page.write_report(tmp_path, "smoke", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'href="([^"]+)"', text)) - {"data:,"}
    assert "#theory-the-decomposition" in targets
    outside = {target for target in targets if target.removeprefix("#") not in ids}
    assert all(target.startswith("https://arxiv.org/abs/") for target in outside), outside


@pytest.mark.parametrize("marked", [True, False])
def test_page_says_what_had_been_seen_before(tmp_path, monkeypatch, marked):
    """With the design of the experiment, in the row alone that it is about, and above the table."""
    experiment, rows = _seen()
    (tmp_path / "decomposition").mkdir()
    _results(tmp_path, monkeypatch, rows=rows)
    monkeypatch.setattr(page, "experiments", lambda: ["decomposition"])
    if marked:
        monkeypatch.setattr(page, "load_experiment", lambda _: experiment)
    page.write_report(tmp_path, "smoke", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    _, *table = text.split("<tbody>")[1].split("<tr class=")
    said = ["Seen before: At &lt;seed 7&gt; it was open." in row for row in table]
    assert said == [marked and place == 1 for place in range(len(table))]
    assert ["Seen before" in row for row in table] == said
    design = "<dt>What had been seen before</dt><dd>A run at seed 7 &amp; 8.</dd>"
    assert text.count(design) == text.count("study, what had been seen before, and why") == marked
    assert text.split("<tbody>")[0].count("1 of these rows had been seen, in part,") == marked
