"""Captions, numbers for people, formulas, and the page that shows a run, here and in a browser."""

import io
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sims.base.errors import InputError
from sims.base.files import write
from sims.judgement.answers import Answer, write_answers
from sims.judgement.summaries import Mean, Share
from sims.judgement.tally import tally
from sims.judgement.wording import percent, significant
from sims.report import write_report
from sims.report.answers import by_claim, listing, table
from sims.report.claims import background, page
from sims.report.learnt import readme_texts
from sims.report.text import html, render_caption, title_of
from sims.study.declaration import Declaration
from sims.study.ledger import read_run
from sims.study.papers import MAIN, papers
from tests.browser.visiting import in_a_browser, visit
from tests.cli.conftest import folder  # noqa: F401
from tests.pipeline import ROOT

CHAPTERS = sorted((ROOT / "docs/theory").glob("*.md"))
ANSWER = Answer(
    result=Share(problems=100, simulated=tally(np.repeat([1.0, -1.0], [90, 10]))),
    word="usually",
    paper=MAIN,
    experiment="small",
    id="gaps",
    claim="decomposition",
    question="Is |a| at least b?",
    status="confirmatory",
    subject="paper",
    says="always",
    law="w",
    always="no",
    salt="dev",
    versions={"jax": "1"},
)


def _caption(path, text, numbers=()):
    path.write_text(text, encoding="utf-8")
    return render_caption(path, "smoke", {"depth": 3}, {ANSWER.id: ANSWER}, dict(numbers))


def test_caption_is_filled_in(tmp_path):
    text = "{{ fidelity }} {{ settings.depth }} {{ gap | percent }}"
    text += " {{ answers.gaps.word }}"
    assert _caption(tmp_path / "c.md", text, {"gap": 0.0123}) == "smoke 3 1.2 % usually\n"


@pytest.mark.parametrize("text", ["{{ nothing }}", "{{ answers.x.word }}", "{{ open", r"$\no$"])
def test_bad_caption_is_an_input_error(tmp_path, text):
    with pytest.raises(InputError, match=r"c\.md"):
        _caption(tmp_path / "c.md", text)


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (significant, None, "–"),
        (significant, 0.0, "0"),
        (significant, -0.01234, "−0.0123"),
        (significant, 1.5e-16, "1.5·10⁻¹⁶"),
        (significant, 1234.5, "1.23·10³"),
        (percent, 0.0123, "1.2 %"),
        (percent, 0.999, "100 %"),
        (percent, -5.83, "−580 %"),
        (percent, 173, "1.7·10⁴ %"),
    ],
)
def test_numbers_for_people(form, value, text):
    assert form(value) == text


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


def test_the_table_has_a_papers_confirmatory_answers_in_the_order_of_its_claims():
    late = replace(ANSWER, id="late", claim="hdi-monotone", question="L?", restriction="n = 9")
    others = replace(ANSWER, paper="2601.22766"), replace(ANSWER, status="exploratory")
    lines = listing(papers()[MAIN], [late, *others, ANSWER], lambda one: f"#{one.id}").splitlines()
    assert [line for line in lines if line.startswith("| [")] == [
        "| [Is &#124;a&#124; at least b?](#gaps) | usually | "
        "90 % of 100 problems (82 to 95 %) | 10 % / 0 % / 0 % |  "
        "| false as stated |  | simulation |",
        "| [L? (n = 9)](#late) | usually | 90 % of 100 problems (82 to 95 %) | 10 % / 0 % / 0 % |  "
        "| false as stated |  | simulation |",
    ]
    proved = [line for line in lines if line.startswith("- By algebra true: Single-head softmax")]
    assert proved[0].endswith("(`tests/test_algebra.py`)")


@pytest.mark.usefixtures("folder")
def test_a_claims_page_answers_first_and_leads_to_what_is_behind():
    """The claim's answers alone, the confirmatory one first; its worst problem, law and formula."""
    shutil.copytree(ROOT / "papers", "papers")
    one = replace(
        ANSWER,
        strata={"narrow": ANSWER.result},
        restriction="n = 9",
        problem={"problem": {}},
        counterexample=3,
        worst={"effect": "There the error rises by 3 % (± 1 %).", "n": "64"},
    )
    tried = replace(ANSWER, status="exploratory", restriction="n = 4")
    more = [replace(tried, id=f"{k}", question=f"Q{k}?") for k in range(12)]
    other = replace(ANSWER, id="far", claim="hdi")
    rows = by_claim([*more, one, other])["decomposition"]
    text = page(rows, "![panel](x.png)")
    order = (
        "**The paper says** (arXiv 2605.20271). Its mean squared error has an explicit bias",
        "**Our reading.**",
        "**Is |a| at least b?** Problems: n = 9.",
        "- **Usually.** Verdict: false as stated. By simulation the claim holds in "
        "90 % of 100 problems (95 % interval 82 to 95 %) and fails in 10 %.",
        "![panel](x.png)",
        "**The surest failure** is problem 3 of `small`. There the error rises by 3 % (± 1 %).",
        "- Its parameters: n: 64.",
        "- `sims decompose small#3` simulates it at a few queries, in a checkout or from a wheel. "
        "Its file: `results/published/counterexamples/gaps.yaml`.",
        "$$\n\\operatorname{MSE}",
        "(../theory/decomposition.md)",
        "**Why this reading**\n\nAn identity cannot fail",
        "- narrow: 90 % of 100 problems (82 to 95 %)",
        "- Q11? (n = 4) **Usually; false as stated.** 90 % of 100 problems (82 to 95 %)",
    )
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    law = background(Declaration.read("small").spec, one, "smoke")
    assert law.startswith("**The problems.** Bandwidths of 0.7 to 0.9.\n\n**How it was")
    assert "`make reproduce FIDELITY=smoke EXPERIMENT=small`" in law


def test_stars_of_a_question_stay_in_bold_type():
    """Of d_k* and H*, in a page and in a table; code keeps its characters."""
    starred = replace(ANSWER, question="Do d_k* and H* rise?", restriction="`a*b` < 1")
    for text in (page([starred]), table([starred])):
        shown = html(text, lambda _: None)
        assert "Do d_k* and H* rise?" in shown
        assert "<code>a*b</code> &lt; 1" in shown
    assert "<strong>Do d_k* and H* rise?</strong>" in html(page([starred]), lambda _: None)


def test_an_exploratory_share_is_no_estimate():
    explored = replace(ANSWER, word="", status="exploratory")
    assert explored.word_in_full() == "exploratory"
    assert replace(explored, result=Mean(problems=2)).word_in_full() == "estimate"


def test_the_title_of_a_caption_is_plain_text():
    assert title_of(r"**Best d_k\* and $x$** (a) …") == "Best d_k* and x"


def test_the_readme_and_the_report_of_a_publication_say_the_same():
    """Every percentage of README.md that a publication filled in stands in its report, too."""
    readme = (ROOT / "README.md").read_text("utf-8")
    report = (ROOT / "results/published/report.html").read_text("utf-8")
    known = set(re.findall(r"[−\d.]+(?=(?:–[\d.]+)? ?%| to)", report))
    for name in readme_texts(read_run(ROOT / "results/published")):
        _, mark, text = readme.partition(f"<!--answers:{name}-->\n")
        assert mark, name
        filled_in = re.findall(r"[−\d.]+(?=%)", text.partition("<!--end-->")[0])
        assert set(filled_in) <= known, name


@pytest.fixture
def report(folder):  # noqa: F811
    """The page of a run of three experiments, two of them of the main paper."""
    shutil.copytree(ROOT / "papers", "papers")
    shutil.copytree("experiments/small", "experiments/early")
    home = folder / "results"
    answers = [
        replace(ANSWER, experiment="early", claim="unification"),
        ANSWER,
        replace(ANSWER, paper="2601.22766", experiment="far", claim="relu-epanechnikov"),
    ]
    write_answers(answers, home / "answers.json", "answers.json of smoke")
    caption = (
        "**Seen** $x_1$ <script>x</script> [a](x.md#there) ![c](http://x.y/z.png)\n\n$$\na\n$$\n"
    )
    image = io.BytesIO()
    Image.new("RGB", (2000, 600), "white").save(image, "PNG")
    for name in ("early", "small", "far"):
        write(caption, home / name / "caption.md", f"caption.md of {name} at smoke")
        write(image.getvalue(), home / name / "figure.png", f"figure.png of {name} at smoke")
    write(image.getvalue(), home / "small/headline.png", "figure.png of small at smoke")
    write_report(home, "smoke", home / "report.html")
    return home / "report.html"


def test_the_page_stands_for_itself(report):
    """Figures of the main paper alone, within it; every link leads to a place of it or a paper."""
    text = report.read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {"decomposition", f"paper-{MAIN}", "paper-2601.22766"} <= set(ids)
    assert "relu-epanechnikov" not in ids
    sources = re.findall(r'src="([^"]{22})', text)
    assert sources == ["data:image/png;base64,"] * 3
    assert re.findall(r'alt="([^"]*)"', text) == ["Seen"] * 3
    places = [text.index(part) for part in ("<img ", "<table", 'n id="decomposition"', 'n id="uni')]
    assert places == sorted(places)
    targets = set(re.findall(r'href="([^"]*)"', text)) - {"data:,"}
    assert "#decomposition" in targets
    outside = {target for target in targets if target.removeprefix("#") not in ids}
    assert all(target.startswith("https://arxiv.org/abs/") for target in outside), outside
    assert "<script" not in text
    assert "Is |a| at least b?</a></td>" in text
    assert '<details><summary>Is |a| at least b?</summary><section id="decomposition">' in text
    assert "Versions: jax 1." in text


@in_a_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_hinders_readers_and_nothing_sticks_out(report, width):
    found = visit(report, width)
    assert found["errors"] == []
    assert found["requests"] == [report.as_uri()], "a page loads nothing but itself"
    assert found["violations"] == []
    assert found["wide"] == width


@in_a_browser
def test_the_published_report_is_at_most_twenty_pages_long():
    """Of the shape of A4, with all that it folds closed."""
    width = 1280
    length = "document.documentElement.scrollHeight"
    found = visit(ROOT / "results/published/report.html", width, expression=length)
    assert found["value"] <= 20 * width * 297 / 210
