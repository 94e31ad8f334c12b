"""The commands of ``sims`` and their options. What they do is imported when they are called."""

import json as formats
import keyword
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Exit, Option, Typer
from typer.core import TyperCommand, TyperOption

from sims import __version__
from sims.base.errors import InputError, one_of
from sims.base.places import place

if TYPE_CHECKING:
    from pydantic import BaseModel

app = Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


class Command(TyperCommand):
    """A command that refuses several values of an option that takes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left of the words, as Typer reads them.

        Raises:
            InputError: an option of one value is given twice: all but the last would be ignored.
        """
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            single = isinstance(option, TyperOption) and not option.multiple and not option.is_flag
            if single and given.count(option) > 1 and not ctx.resilient_parsing:
                raise InputError(option.opts[0], f"{given.count(option)} values", "one value")
        return super().parse_args(ctx, args)


def _names() -> list[str]:
    """Names of experiments, for the shell's completion."""
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


ANSWER_KEYS = ("experiment", "id", "question", "status", "word", "always")
"""What the JSON list of claims says of an answer."""


def _version(requested: bool) -> None:
    if requested:
        print(f"sims {__version__}")
        raise Exit


@app.callback()
def sims(version: Annotated[bool, Option("--version", callback=_version)] = False) -> None:
    """Multi-head attention as an ensemble of Nadaraya-Watson estimators.

    Theory and simulation of the bias-variance-covariance decomposition, side by side.
    """


def _settings(**options: Any) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


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

    decompose.decompose(spec, _settings(rel_mcse=rel_mcse, seed=seed), json, allow_code, dry)


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

    parts, simulation = (shard, gather, shards), _settings(rel_mcse=rel_mcse, seed=seed)
    sweep.sweep(spec, set or [], simulation, output, parts, options or [], allow_code, dry)


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
    """Run one experiment: both roads, answers and figure.

    What `sims.study.run` does from Python. Finished units are kept. A folder outside experiments/
    runs its code with --allow-code alone.
    """
    from sims.cli import steps

    steps.run(experiment, fidelity, seed_offset, allow_code, dry)


@app.command()
def inspect(
    models: Annotated[
        list[str],
        Argument(
            metavar="MODEL...",
            help="a .safetensors file, its .index.json, or a folder; several: checkpoints",
        ),
    ],
    config: Annotated[str | None, Option(help="config.json; default: the one beside it")] = None,
    activations: Annotated[
        list[str] | None,
        Option(
            help="npz: attention module, or number of a layer, to inputs (sequence, token, d) or "
            "their covariance (d, d); a second one is for --compare"
        ),
    ] = None,
    heads: Annotated[int | None, Option(help="their number, where no config says it")] = None,
    attention: Annotated[str | None, Option(help="causal or full, where no config says it")] = None,
    tolerance: Annotated[
        float, Option(help="output error up to which heads count as redundant")
    ] = 0.01,
    compare: Annotated[
        str | None, Option(help="another model, or a file that --output wrote")
    ] = None,
    output: Annotated[Path | None, Option(help="FILE.nc, the figure beside it")] = None,
    fail_above: Annotated[
        list[str] | None,
        Option(help="NAME=NUMBER, several times: exit code 1 if a layer's number is above it"),
    ] = None,
    json: Json = False,
) -> None:
    """Report on the attention heads of a trained model.

    Weights give overlaps of key subspaces beside random ones, diversity indices and ranks; inputs
    of the attention layers (--activations) give effective keys, noise correlation, what merging or
    pruning heads costs in output error, and how far keys can be compressed, with standard errors
    over sequences. Nothing is unpickled.
    """
    from sims.cli import inspect

    rules = {"heads": heads, "attention": attention, "tolerance": tolerance}
    files = config, activations or [], compare, output
    if not inspect.run(models, *files, rules, fail_above or [], json):
        raise Exit(1)


@app.command()
def experiments(json: Json = False) -> None:
    """List the experiments.

    Those of this folder, or where it has none those that came with sims.
    """
    from sims.base.documents import read_yaml
    from sims.cli.listing import print_table

    rows: list[dict[str, Any]] = []
    for name in _names():
        data = read_yaml(place("experiments") / name / "experiment.yaml")
        ids = list(dict.fromkeys(str(q.get("claim", q["id"])) for q in data["questions"]))
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
    """List the papers' claims with their latest answers.

    Claims come from papers/*.yaml (of this folder, if it has papers), the rest from answers.json in
    results/FIDELITY if there is such a file, otherwise in results/published.
    """
    from sims.cli.listing import print_table
    from sims.judgement.wording import INTERVAL
    from sims.study.ledger import read_run
    from sims.study.papers import papers

    answers = read_run(source := Path("results", fidelity), fidelity)
    answers = answers or read_run(source := place("results/published"))
    registry = papers()
    if paper is not None and paper not in registry:
        allowed = one_of(registry, paper) or "a paper with a file in papers/"
        raise InputError("--paper", paper, allowed)
    listed = []
    for id, entry in registry.items():
        if paper not in (None, id):
            continue
        cells = []
        for claim in (*entry.claims, *entry.ours):
            matches = [
                answer for answer in answers if (answer.paper, answer.claim) == (id, claim.id)
            ]
            known_by = "by algebra" if claim.algebra else "not covered"
            rows = []
            for answer in matches:
                word, share = answer.spoken().replace("; ", "\n"), answer.result.headline(True)
                rows.append((answer.question, word, share))
            rows = rows or [(claim.statement, known_by, claim.algebra)]
            cells += [(claim.id * (row is rows[0]), *row) for row in rows]
            facts = [{key: getattr(answer, key) for key in ANSWER_KEYS} for answer in matches]
            listed.append({"paper": id, **claim.model_dump(), "claim": claim.id, "answers": facts})
        if not json:
            print(f"arXiv {id}", entry.title)
            print_table(("claim", "question", "answer", "how often"), cells)
    if json:
        print(formats.dumps(listed, indent=1, ensure_ascii=False))
    else:
        note = f"Answers: {source}; {INTERVAL}s over problems in parentheses"
        print(note if answers else "No answers yet: make reproduce")


@app.command()
def advise(
    data: Annotated[
        Path | None, Option(help="rows: .csv with a header, or .npz with X, y and perhaps groups")
    ] = None,
    target: Annotated[str | None, Option(help="of a .csv: the column that is predicted")] = None,
    groups: Annotated[
        str | None, Option(help="of a .csv: rows of a group are left out together")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="of frames and of the rows that choose")] = None,
    n: Annotated[int | None, Option(help="number of keys: advice from theory alone")] = None,
    budget: Annotated[int | None, Option(help="with --n: D = H·d_k")] = None,
    noise: Annotated[
        float | None, Option(help="of labels, σ for a target of variance 1 (--n, --context)")
    ] = None,
    smoothness: Annotated[
        float | None, Option(help="with --n: β of a Matérn target; none: squared exponential")
    ] = None,
    context: Annotated[
        str | None, Option(help="4k:128k: a temperature tuned at 4,096 keys, kept at 131,072")
    ] = None,
    rule: Annotated[
        str | None, Option(help="gaussian or softmax (--n); softmax, sparsemax, … (--context)")
    ] = None,
    json: Json = False,
) -> None:
    """Advise on heads, head dimension, weight rule and temperature.

    From --data by leave-one-out errors beside other methods; from --n, --budget, --noise by theory;
    for a longer --context by what a kept temperature costs. Each names the published answers that
    it rests on.
    """
    options = {k: v for k, v in locals().items() if k != "json" and v is not None}
    from sims.cli.advise import advise

    advise(options, json)


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
    file: Annotated[
        Literal["experiment", "problem", "decompose", "sweep", "paper", "variables"],
        Argument(help="which file"),
    ] = "experiment",
) -> None:
    """Print the JSON schema of a file that users write."""
    from sims.study.describing import VariablesSpec
    from sims.study.papers import Paper
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
    print(formats.dumps(models[file].model_json_schema(), indent=1, ensure_ascii=False))


@app.command(hidden=True)
def step(
    name: str,
    experiment: Annotated[str | None, Argument()] = None,
    fidelity: Fidelity = "standard",
    output: Path | None = None,
    part: str | None = None,
) -> None:
    """Do one step of the pipeline, as the Snakefile calls it."""
    from sims.cli import steps

    steps.step(name, experiment, fidelity, output, part)


for registered in app.registered_commands:
    registered.cls = Command
