"""An experiment that asks questions of a law of problems, from its file to the published page."""

import json
from pathlib import Path

import pytest
import yaml

from sims.judgement.answers import read_answers
from sims.study.code import digest
from sims.study.declaration import Declaration
from sims.study.running import Run
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import run, write

EXPERIMENT = yaml.safe_load("""
title: Means of draws
paper: "2601.00001"
aim: Does the mean square of a mean fall, and by the formula?
law: {text: "σ from 0.5 to 2, both n", count: 100}
simulation: {batches: 32, replicates_per_batch: 1024}
fidelities: {smoke: {}, standard: {}, paper: {}}
questions:
  - id: gaps
    question: Is it σ²/n?
    asks: gap
    effect: gaps
    tolerance: methods
    status: confirmatory
  - id: falls
    claim: fall
    question: Does it fall?
    asks: share
    effect: falls
    says: always
    restrict: {text: n = 9, where: {n: 9.0}}
    status: confirmatory
  - id: size
    own: It is large.
    question: How large?
    asks: mean
    effect: size
    status: exploratory
""")
SOURCES = {
    "study": """
        from sims.study.study import Study, problem_digest

        from . import figure, predict, problems, simulate, statistic


        class Small(Study):
            def units(self):
                return simulate.units(self)

            def predictions(self):
                return predict.predict(self)

            def problem_digests(self):
                return {"all": problem_digest(problems.drawn(self))}

            def effects(self, results):
                return statistic.effects(results)

            def parameters(self, results):
                return statistic.parameters(results)

            def figure(self, panels, answers):
                return figure.figure(panels, answers)

            def file_of(self, number):
                return problems.problem(self, number)
    """,
    "problems": """
        import numpy as np

        def drawn(experiment):
            rng = np.random.default_rng(experiment.simulation.seed)
            count = 2 * experiment.spec.law["count"]
            return {"sd": rng.uniform(0.5, 2, count), "n": np.tile([9.0, 25.0], count // 2)}

        def problem(experiment, index):
            return {"problem": {"sd": float(drawn(experiment)["sd"][index])}}
    """,
    "simulate": """
        import numpy as np

        from sims.montecarlo import HostBatches
        from sims.study.units import SampledUnit

        from .problems import drawn

        def batch(draw, replicates, drawn):
            scale = drawn["sd"] / np.sqrt(drawn["n"])
            means = scale * draw.rng().standard_normal((replicates, len(scale)))
            fell = np.where(drawn["sd"] < 1.9, 1.0, -1.0)
            return {"square": (means**2).mean(0), "fell": fell + means.mean(0)} | drawn

        def units(experiment):
            dims = dict.fromkeys(("square", "fell", "sd", "n"), "problem")
            return {"all": SampledUnit(HostBatches(batch, constants=drawn(experiment), dims=dims))}
    """,
    "predict": """
        import xarray as xr

        from .problems import drawn

        def predict(experiment):
            own = drawn(experiment)
            return {"all": xr.Dataset({"square": ("problem", own["sd"] ** 2 / own["n"])})}
    """,
    "statistic": """
        import pandas as pd

        from sims.judgement.effects import gap, mean, share

        def parameters(results):
            own = results.estimates["all"]
            return pd.DataFrame({name: own[name].values[0] for name in ("sd", "n")})

        def effects(results):
            own, theory = results.estimates["all"], results.predictions["all"]["square"].values
            square = own["square"].values.T
            return {
                "gaps": gap(square, theory),
                "falls": share(own["fell"].values.T),
                "size": mean(square),
            }
    """,
    "figure": """
        from sims import figures

        def figure(panels, answers):
            first = next(iter(answers))
            drawing, axes = figures.panels(1, 1, width=figures.COLUMN, title=first)
            return drawing
    """,
}
CAPTION = "**Answered** {{ answers.falls.word }}, always: {{ answers.falls.always }}"
PAPER = """
arxiv: "2601.00001"
title: P
authors: A
year: 2026
read: All.
family: [falls]
claims:
  - {id: fall, statement: S., source: abstract, reconstruction: R.}
  - {id: gaps, statement: S., source: abstract, reconstruction: R., headline: true}
"""


@pytest.fixture
def home(folder, monkeypatch):  # noqa: F811
    """The folder of that experiment, in a working directory with its paper."""
    monkeypatch.delenv("SIMS_SALT", raising=False)
    Path("papers").mkdir()
    Path("papers/2601.00001.yaml").write_text(PAPER)
    own = {f"{name}.py": text.replace("\n        ", "\n") for name, text in SOURCES.items()}
    return write(own | {"caption.md": CAPTION}, **EXPERIMENT)


def test_from_questions_to_the_published_page(home, capsys):
    assert run("run", "small") == 0
    out = capsys.readouterr().out
    assert "Does it fall?" in out
    assert "false under our reading" in out
    assert "results/standard/small/answers.json\n" in out
    Path("README.md").write_text("# R\n<!--answers:again-->\nold\n<!--end-->\nmore\n")
    for step in ("ledger", "report", "publish", "again"):
        assert run("step", step) == 0, capsys.readouterr().err
    of = "answers.json of standard"
    gaps, falls, size = read_answers("results/standard/answers.json", of)
    assert (gaps.word, gaps.always, gaps.result.problems) == ("nearly always", "not refuted", 200)
    assert (falls.word, falls.always, falls.family) == ("usually", "no", 1)
    assert falls.result.problems == 100
    assert (falls.claim, falls.restriction, falls.salt) == ("fall", "n = 9", "dev")
    assert falls.seed == Declaration.read(home).seed("standard")
    assert (size.word, size.result.value) == (
        "",
        pytest.approx(1.75 * (1 / 9 + 1 / 25) / 2, rel=0.2),
    )
    assert size.where[1].groups == ["9.0", "25.0"]
    published = Path("results/published")
    problem = yaml.safe_load((published / "counterexamples/falls.yaml").read_text())
    assert problem["problem"]["sd"] > 1.9
    assert read_answers(published / "answers.json", of)[1].problem == dict.fromkeys(problem)
    lines = (published / "answers.md").read_text().splitlines()
    falling, near, _, _, own = [line for line in lines if line.startswith("| ")][2:]
    assert own.startswith("| How large? | estimate | ")
    assert falling.startswith("| Does it fall? (n = 9) | usually | ")
    assert "| false under our reading |" in falling
    assert near.startswith("| Is it σ²/n? | nearly always within 5 % | within ")
    _, _, again, *rest = Path("README.md").read_text().splitlines()
    assert again.startswith("New random problems gave the same answer to 3 of 3 questions (median ")
    assert rest == ["<!--end-->", "more"]
    page = (published / "report.html").read_text()
    assert "<code>sims decompose small#" in page
    caption = Path("results/standard/small/caption.md").read_text()
    assert caption.startswith("**Answered** usually, always: no\n")
    capsys.readouterr()
    for command in ("claims", "experiments"):
        assert run(command, "--json") == 0
    claims, experiments = capsys.readouterr().out.split("\n]\n[")
    asked = [row["answers"][0]["id"] for row in json.loads(claims + "]")]
    assert asked[:3] == ["falls", "gaps", "size"]  # then published ones of no paper
    assert json.loads(claims + "]")[2]["statement"] == "It is large."
    assert json.loads("[" + experiments)[0]["claims"] == ["gaps", "fall", "size"]


def test_whoever_edits_a_question_gets_other_problems(home, monkeypatch):
    seeds, path = [Declaration.read(home).seed("paper")], home / "experiment.yaml"
    before = digest("simulate", Declaration.read(home))
    path.write_text(path.read_text().replace("Does it fall", "Falls it") + "# words")
    more = yaml.safe_load(path.read_text())
    more["law"]["text"] = "in other words"
    more["questions"].append(more["questions"][0] | {"id": "further", "claim": "gaps"})
    path.write_text(yaml.safe_dump(more))
    assert Declaration.read(home).seed("paper") == seeds[0]
    assert digest("simulate", Declaration.read(home)) == before
    statistic = home / "statistic.py"
    statistic.write_text(statistic.read_text().replace("square", "squared_error"))
    assert Declaration.read(home).seed("paper") == seeds[0]
    more["questions"][0]["restrict"] = {"text": "large", "where": {"sd": {"at_least": 1.5}}}
    path.write_text(yaml.safe_dump(more))
    seeds.append(Declaration.read(home).seed("paper"))
    more["questions"][0]["revision"] = 2
    path.write_text(yaml.safe_dump(more))
    seeds.append(Declaration.read(home).seed("paper"))
    Path("results/published").mkdir(parents=True)
    published = [{"experiment": "small", "salt": "published"}]
    Path("results/published/answers.json").write_text(json.dumps(published))
    assert Declaration.read(home).seed("standard") == seeds[-1]
    seeds.append(Declaration.read(home).seed("paper"))
    monkeypatch.setenv("SIMS_SALT", "dev")
    assert len({*seeds}) == 4
    assert Declaration.read(home).seed("paper") == seeds[-2]
    assert Run.load("small").simulation.seed == seeds[-2] < 2**63
    assert (
        len({digest(step, Declaration.read(home)) for step in ("simulate", "predict")} | {before})
        == 3
    )


BAD = [
    ("effect: gaps", "effect: gap", "questions, gaps, effect: got 'gap'; allowed: gaps, falls"),
    ("asks: mean", "asks: share", "questions, size, asks: got 'share'; allowed: mean, which the"),
    ("n: 9.0", "m: 9.0", "column of parameters: got 'm'; allowed: sd, n"),
]


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_what_is_wrong_is_one_line(home, capsys, old, new, words):
    """Which only the experiment's own code can tell, before anything is simulated."""
    path = home / "experiment.yaml"
    path.write_text(path.read_text().replace(old, new))
    assert run("step", "rehearse", "small") == 2
    assert not list(Path("results").rglob("*.np*"))
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_an_experiment_can_ask_of_the_problems_of_another_one(home, capsys):
    other = home.parent / "other"
    other.mkdir()
    asked = EXPERIMENT | {"law": {"of": "small", "text": "the same"}, "paper": "2601.00001"}
    asked["questions"] = [EXPERIMENT["questions"][0] | {"claim": "fall", "id": "again"}]
    (other / "experiment.yaml").write_text(yaml.safe_dump(asked))
    (other / "caption.md").write_text("")
    (other / "study.py").write_text(
        "from ..small.study import Small\n\n\nclass Other(Small):\n    name_of = 1\n"
    )
    first, second = Declaration.read(home), Declaration.read(other)
    assert second.seed("smoke") == first.seed("smoke")
    assert second.law == first.law
    before = digest("simulate", second)
    (home / "caption.md").write_text("words")
    assert digest("simulate", second) == before
    problems = home / "problems.py"
    problems.write_text(problems.read_text().replace("0.5, 2", "0.5, 1"))
    assert digest("simulate", second) != before
    assert run("run", "other", "--fidelity", "smoke") == 0, capsys.readouterr().err
    asked["law"]["count"] = 3
    (other / "experiment.yaml").write_text(yaml.safe_dump(asked))
    assert run("run", "other", "--fidelity", "smoke") == 2
    assert "`of` with an experiment's name" in capsys.readouterr().err
