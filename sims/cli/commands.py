"""The commands of ``sims`` and their options. What they do is imported when they are called."""

import json as formats
import keyword
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Exit, Option, Typer

from sims import __version__
from sims.errors import InputError, one_of
from sims.places import place

if TYPE_CHECKING:
    from pydantic import BaseModel

app = Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


def _names() -> list[str]:
    """What the shell completes the name of an experiment to."""
    return sorted(path.parent.name for path in place("experiments").glob("*/experiment.yaml"))


Name = Annotated[str, Argument(help="its name, or its folder", autocompletion=_names)]
Fidelity = Annotated[
    Literal["smoke", "standard", "paper"],
    Option(help="smoke: a minute or two; standard: minutes on 4 cores; paper: a cluster"),
]
Dry = Annotated[
    bool,
    Option("--dry", help="only say what would be done, in about what time and memory"),
]
Json = Annotated[bool, Option("--json", help="print JSON, for programs")]
Precision = Annotated[
    float | None,
    Option(
        help="simulate until every term's MCSE is below this share of it, such as 0.01, but for "
        "terms below simulation.negligible (0.001) of the MSE; at most simulation.max_batches"
    ),
]
AllowCode = Annotated[
    bool,
    Option("--allow-code", help="run the Python files that it names: code of people you trust"),
]
Seed = Annotated[int | None, Option(help="of the simulation, in place of the file's")]


VERDICT_KEYS = ("experiment", "regime", "kind", "over", "verdict", "edited")
"""What the JSON list of claims says of a verdict."""
ANSWER_KEYS = ("experiment", "id", "question", "status", "word", "always")
"""What it says of an answer."""


def _version(asked: bool) -> None:
    if asked:
        print(f"sims {__version__}")
        raise Exit


@app.callback()
def sims(version: Annotated[bool, Option("--version", callback=_version)] = False) -> None:
    """Multi-head attention as an ensemble of Nadaraya-Watson estimators.

    Theory and simulation of the bias-variance-covariance decomposition, side by side.
    """


@app.command()
def decompose(
    spec: Annotated[
        str, Argument(help="the problem: see `sims schema decompose`; or house#17, one of a law")
    ],
    rel_mcse: Precision = None,
    seed: Seed = None,
    json: Json = False,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Decompose the error of one problem by both roads.

    Prints every term of the bias-variance-covariance decomposition by theory and by simulation,
    with the Monte Carlo standard error (MCSE), the gap between the two and how far theory can be
    trusted. Theory is first order in 1/n (gaussian and softmax kernels, Gaussian designs) unless
    the file says `theory: {order: exact}` (any n, kernel and design) or `auto`. `sims sweep` of the
    same file writes the terms as netCDF.
    """
    from sims.cli import decompose

    decompose.decompose(spec, rel_mcse, seed, json, allow_code, dry)


@app.command()
def sweep(
    spec: Annotated[str, Argument(help="the problem and the sweep: see `sims schema sweep`")],
    set: Annotated[
        list[str] | None,
        Option(
            help="an axis of the grid, several times: heads.bandwidth=0.3:1:5 (low:high:points), "
            "n=256:4096:5:log, heads.kernel=gaussian,softmax"
        ),
    ] = None,
    rel_mcse: Precision = None,
    seed: Seed = None,
    output: Annotated[
        Path | None,
        Option(help="FILE.nc, the figure beside it; default: results/sweeps/SPEC.nc"),
    ] = None,
    shard: Annotated[
        str | None, Option(help="compute the i-th of N parts, i/N, into OUTPUT.shards/i-of-N.nc")
    ] = None,
    gather: Annotated[
        int | None, Option(min=1, max=10_000, help="write the file from these N parts")
    ] = None,
    shards: Annotated[
        int | None,
        Option(
            min=2, max=10_000, help="compute N parts side by side and gather them, by snakemake"
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        Argument(help="after --: of snakemake under --shards, such as --workflow-profile slurm"),
    ] = None,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Decompose a problem at many values of its fields.

    Writes one netCDF file, labelled by the fields, and a figure. What is done is kept: the same
    command goes on where it was interrupted.
    """
    from sims.cli import sweep

    parts = shard, gather, shards
    sweep.sweep(spec, set or [], rel_mcse, seed, output, parts, options or [], allow_code, dry)


@app.command()
def run(
    experiment: Name,
    fidelity: Fidelity = "standard",
    seed_offset: Annotated[
        int, Option(min=0, max=10**12, help="added to the experiment's seeds: other draws")
    ] = 0,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Run one experiment: both roads, verdicts or answers, and figure.

    What `sims.study.run` does from Python. Finished points are kept. A folder outside experiments/
    runs its code with --allow-code alone.
    """
    from sims.cli import steps

    steps.run(experiment, fidelity, seed_offset, allow_code, dry)


@app.command()
def table(
    experiment: Name,
    fidelity: Fidelity = "standard",
    order: Annotated[Literal["first", "exact"], Option(help="of theory")] = "first",
    latex: Annotated[bool, Option("--latex", help="a LaTeX table in place of CSV")] = False,
) -> None:
    """Print the results of an experiment as CSV, one row a point.

    Its coordinates, and of every scalar the simulated mean, its Monte Carlo standard error
    (<term>_mcse) and theory's value (<term>_theory). Needs a finished run.
    """
    from sims.study.experiment import load_experiment
    from sims.study.results import Results

    loaded = load_experiment(experiment, fidelity, allow_code=None)
    folder = Path("results", fidelity, loaded.name)
    frame = Results.load(folder, loaded.settings, loaded.identity).table(order)
    if latex:
        print(frame.to_latex(index=False, escape=True, float_format="%.6g"), end="")
    else:
        print(frame.to_csv(index=False), end="")


@app.command()
def experiments(json: Json = False) -> None:
    """List the experiments.

    Those of this folder, or where it has none those that came with sims.
    """
    from sims.cli.listing import print_table
    from sims.documents import read_yaml

    rows: list[dict[str, Any]] = []
    for name in _names():
        data = read_yaml(place("experiments") / name / "experiment.yaml")
        stated = [*(data.get("claims") or []), *(data.get("questions") or [])]
        ids = list(dict.fromkeys(str(c.get("claim", c.get("id"))) for c in stated))
        rows.append({"name": name, "title": str(data.get("title")), "claims": ids})
    if json:
        print(formats.dumps(rows, indent=1, ensure_ascii=False))
        return
    cells = [(row["name"], row["title"], ", ".join(row["claims"])) for row in rows]
    print_table(("experiment", "title", "claims"), cells)
    print("Run one:  sims run NAME --fidelity smoke|standard|paper")


@app.command()
def claims(
    fidelity: Fidelity = "standard",
    paper: Annotated[str | None, Option(help="arXiv id: only the claims of this paper")] = None,
    json: Json = False,
) -> None:
    """List the papers' claims, the latest verdicts on them and answers to questions about them.

    Claims come from papers/*.yaml (of this folder, if it has experiments of its own), the rest from
    ledger.json and answers.json in results/FIDELITY if there are such, otherwise in
    results/published.
    """
    from sims.cli.listing import print_table
    from sims.judgement.grouping import by_paper
    from sims.papers import papers
    from sims.report.answers import spoken
    from sims.study.ledger import read_run

    verdicts, answers = read_run(source := Path("results", fidelity), fidelity)
    if not (verdicts or answers):
        verdicts, answers = read_run(source := place("results/published"))
    groups = {group.arxiv: group for group in by_paper(verdicts, papers(), answers)}
    if paper is not None:
        if paper not in groups:
            allowed = one_of(groups, paper) or "a paper with a file in papers/"
            raise InputError("--paper", paper, allowed)
        groups = {paper: groups[paper]}
    listed = []
    for group in groups.values():
        rows = [*group.claims, *group.ours]
        if not json:
            print(f"arXiv {group.arxiv}", group.about.title if group.about else "")
            cells = [
                (
                    row.id,
                    row.statement,
                    "\n".join(
                        [
                            *[f"by algebra ({row.algebra})"] * bool(row.algebra),
                            *(f"{spoken(a)}: {a.question}" for a in row.answers),
                            *(
                                f"{v.verdict} ({v.experiment}, {v.regime}; {v.worth})"
                                f"{', edited after the simulation began' * v.edited}"
                                for v in row.verdicts
                            ),
                        ]
                    )
                    or "not covered",
                )
                for row in rows
            ]
            print_table(("claim", "what it says", "answers and verdicts"), cells)
        listed += [
            {
                "paper": group.arxiv,
                "claim": row.id,
                "ours": row in group.ours,
                "statement": row.statement,
                "source": row.source,
                "reconstruction": row.reconstruction,
                "algebra": row.algebra,
                "answers": [{key: getattr(a, key) for key in ANSWER_KEYS} for a in row.answers],
                "verdicts": [{key: getattr(v, key) for key in VERDICT_KEYS} for v in row.verdicts],
            }
            for row in rows
        ]
    if json:
        print(formats.dumps(listed, indent=1, ensure_ascii=False))
    else:
        print(
            f"Answers and verdicts: {source}"
            if verdicts or answers
            else "No ledger yet: make reproduce"
        )


@app.command()
def new(name: Annotated[str, Argument(help="of its folder, as of a module")]) -> None:
    """Begin an experiment of your own.

    Writes experiments/NAME/: an example that runs as it is.
    """
    if not re.fullmatch(r"[a-z]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise InputError("name", name, "lower-case letters, digits and _, a letter first")
    folder = Path("experiments", name)
    if folder.exists():
        raise InputError("name", name, "one that is no folder of experiments/ yet")
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f'"""{name.replace("_", " ").capitalize()}."""\n')
    for part in (files("sims.study") / "scaffold").iterdir():
        target = folder / part.name.removesuffix(".txt")
        target.write_text(part.read_text("utf-8"), encoding="utf-8")
        print(target)
    print(f"sims run {name} --fidelity smoke")


@app.command()
def schema(
    what: Annotated[
        Literal["experiment", "problem", "decompose", "sweep", "paper", "variables"],
        Argument(help="which file"),
    ] = "experiment",
) -> None:
    """Print the JSON schema of a file that users write."""
    from sims.papers import Paper
    from sims.study.describing import VariablesSpec
    from sims.study.schema import ExperimentSpec
    from sims.study.specification import ProblemSpec
    from sims.study.sweepfile import DecomposeSpec, SweepSpec

    models: dict[str, type[BaseModel]] = {
        "experiment": ExperimentSpec,
        "problem": ProblemSpec,
        "decompose": DecomposeSpec,
        "sweep": SweepSpec,
        "paper": Paper,
        "variables": VariablesSpec,
    }
    print(formats.dumps(models[what].model_json_schema(), indent=1, ensure_ascii=False))


@app.command(hidden=True)
def step(
    name: str,
    experiment: Annotated[str | None, Argument()] = None,
    fidelity: Fidelity = "standard",
    output: Path | None = None,
    part: str | None = None,
) -> None:
    """One step of the pipeline, as the Snakefile calls it."""
    from sims.cli import steps

    steps.step(name, experiment, fidelity, output, part)
