"""Captions, numbers for people, formulas, and the page that shows a run."""

import io
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
import xarray as xr
from PIL import Image

from sims.errors import InputError
from sims.files import write
from sims.judgement import Verdict, write_verdicts
from sims.papers import MAIN, papers
from sims.report import page, render_caption, write_overview
from sims.report.answers import write_answers_page
from sims.report.findings import sentence
from sims.report.text import html, percent, significant
from sims.study.experiment import load_experiment
from sims.study.results import Results

ROOT = Path(__file__).parents[1]
CHAPTERS = [ROOT / "docs/theory.md", *sorted((ROOT / "docs/theory").glob("*.md"))]
VERDICT = Verdict("angles", "e", "all", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.9, 5, "r")
DATA = {"0": xr.Dataset(attrs={"replicates": 8})}
RESULTS = Results("e", "smoke", DATA, {}, {"depth": 3}, {"0": {}}, {}, {})
OTHER = "2601.00001"
"""A paper whose file the working directory does not have."""


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
    ("value", "text"), [(0.0123, "1.2 %"), (0.999, "100 %"), (-5.83, "−580 %"), (173, "1.7·10⁴ %")]
)
def test_shares_for_people(value, text):
    assert percent(value) == text


def test_markdown_of_the_page():
    """Formulas are MathML, an index stands beside an accented letter, links stay in the page."""

    def inside(target):
        return "theory-there" if target.endswith("#there") else None

    def text(markdown):
        return re.sub(r"\n *", "", html(markdown, inside))

    assert "<msub><mi>b</mi><mn>1</mn></msub>" in text("$b_1$")
    assert "<mi>f</mi><mo stretchy" in text(r"$\hat f_h$")
    assert "</mover></mrow><mi>h</mi></msub>" in text(r"$\hat f_h$")
    assert text("`$a$`, 5 $ and 6 $") == "<p><code>$a$</code>, 5 $ and 6 $</p>"
    links = "[a](x.md#there), [*b*](y.md), ![c](d.png), <b>"
    expected = '<p><a href="#theory-there">a</a>, <em>b</em>, c, &lt;b&gt;</p>'
    assert text(links) == expected


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_formula_of_the_theory_is_tex(path):
    assert html(path.read_text(encoding="utf-8"), lambda _: None).count("<math") > 20


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
    assert "`identity` by algebra (tested); `ensemble` by" in main
    assert "`decomposition` not covered; " in main
    assert main.index("`angles` 1 ✓ and by algebra 1 ✗; ") < main.index("*rates* by algebra 1 ✓")
    assert other == f"| [{OTHER}](https://arxiv.org/abs/{OTHER}) | `angles` 1 ? |"
    assert "1 of them were edited after the simulation began." in overview


def test_the_page_of_answers_names_what_is_true_by_algebra(tmp_path, monkeypatch):
    monkeypatch.setattr("sims.report.answers.table", lambda *_: "")
    monkeypatch.setattr("sims.report.answers.papers", lambda: {MAIN: papers()[MAIN]})
    for paper, said in ((MAIN, True), (OTHER, False)):
        asked = SimpleNamespace(law="", paper=paper, salt="dev")
        write_answers_page([asked], "smoke", tmp_path / "answers.md")
        text = (tmp_path / "answers.md").read_text(encoding="utf-8")
        assert (
            "- `identity`: settled by algebra, tested in tests/test_algebra.py\n" in text
        ) == said


def test_sentences_say_how_many_and_where_not():
    no = [replace(VERDICT, regime=name, verdict="refuted") for name in "abcd"]
    said = "Supported in 1, refuted in 4 of 5 regimes tried. Refuted: a; b; c and 1 more."
    assert sentence([VERDICT, *no]) == said


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Writes the page of one experiment's results, as far as the page reads them."""

    def made(rows=(), caption="**Seen** $x_1$", name="temperature_transfer"):
        whose = f"{name} at smoke"
        (tmp_path / name).mkdir()
        write(caption, tmp_path / name / "caption.md", f"caption.md of {whose}")
        image = io.BytesIO()
        Image.new("RGB", (1200, 600), "white").save(image, "PNG")
        write(image.getvalue(), tmp_path / name / "figure.png", f"figure.png of {whose}")
        origin = {"specification": {"no": "where"}, "versions": {"jax": "1"}, "xla_flags": ""}
        monkeypatch.setattr("sims.report.origins.provenance", lambda *_: origin)
        row = replace(VERDICT, claim="rates", experiment=name, kind="simulation")
        write_verdicts(rows or [row], tmp_path / "ledger.json", "ledger.json of smoke")
        monkeypatch.setattr(page, "experiments", lambda: [name])
        page.write_report(tmp_path, "smoke", tmp_path / "report.html")
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return made


def test_page_shows_an_experiment_with_its_design(report):
    """Title, design, caption without its HTML and table, provenance without the experiment file."""
    raw = report(
        caption="**Seen** <script>x</script> <b>y</b>\n\n"
        "| claim | where | verdict | effect | margin |\n"
        "|---|---|---|---|---|\n| `rates` | nowhere | supported | 1 | 2 |\n"
    )
    assert "<b>y" not in raw
    assert raw.count("<script>") == 1
    text = unescape(raw)
    spec = load_experiment("temperature_transfer").spec
    for words in (spec.aim, spec.estimands, ">Seen</h2>", "jax 1", spec.claims[0].rationale):
        assert words in text
    assert "nowhere" not in text
    assert 'src="data:image/' in text
    assert "<dt>xla flags</dt><dd>none</dd>" in text
    assert "where" not in text.split('id="the-provenance"')[-1].split("<script>")[0]


def test_rows_of_the_page(report):
    """Exact checks have neither interval nor p-value; what had been seen before is said."""
    name = "temperature_transfer"
    claim = next(c for c in load_experiment(name).claims if c.seen_before)
    row = replace(VERDICT, experiment=name, paper=claim.paper, p_value=0.01234)
    rows = [
        replace(row, kind="program", reason="largest gap of 3"),
        replace(row, kind="simulation", claim=claim.id, regime=claim.regime),
    ]
    text = unescape(report(rows, name=name))
    _, exact, tested = text.split("<tbody>")[1].split("<tr class=")
    assert "Exact check: largest gap of 3." in exact
    assert not {word for word in ("0.012", "[0, 0.2]", "p =", "Seen before") if word in exact}
    said = ("p = 0.012", "[0, 0.2]", "margin 0.3", f"Seen before: {claim.seen_before}")
    assert all(word in tested for word in said)


def test_a_page_links_to_nothing_beside_it(report):
    """Every link leads to an element of the page or to the paper; every element's id is its own."""
    text = report(caption="**Seen** [theory](../../docs/theory.md#sparse-attention), [file](x.md)")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'href="([^"]+)"', text)) - {"data:,"}
    assert "#theory-sparse-attention" in targets
    outside = {target for target in targets if target.removeprefix("#") not in ids}
    assert all(target.startswith("https://arxiv.org/abs/") for target in outside), outside
