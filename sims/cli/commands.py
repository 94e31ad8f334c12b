"""The commands of ``sims`` and their options: what is parsed, and which function runs it."""

import argparse

from sims import __version__
from sims.cli.arguments import command, dry, experiment, fidelity
from sims.cli.options import Parser, filled, positive, whole_number

OFFSETS = 10**12
"""Largest offset of a seed."""


def make_parser() -> Parser:
    """The parser of ``sims``, with every command."""
    parser = Parser(
        prog="sims",
        allow_abbrev=False,
        description="Multi-head attention as an ensemble of Nadaraya-Watson estimators: theory "
        "and simulation of the bias-variance-covariance decomposition, side by side.",
    )
    parser.add_argument("--version", action="version", version=f"sims {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    one = command(
        commands,
        "decompose",
        "decompose:decompose",
        "decompose the error of one problem by both roads",
        "Reads a problem (`sims schema decompose` describes the file) and prints every term of "
        "its bias-variance-covariance decomposition by theory and by simulation, with the Monte "
        "Carlo standard error (MCSE), the gap between the two and how far theory can be trusted. "
        "Theory is first order in 1/n (gaussian and softmax kernels, Gaussian designs) unless the "
        "file says `theory: {order: exact}`: any n, kernel and design.",
    )
    one.add_argument("spec", metavar="SPEC.yaml", type=filled, help="the problem")
    one.add_argument(
        "--rel-mcse",
        type=positive,
        metavar="R",
        help="simulate until every term's MCSE is below this share of it, such as 0.01, but for "
        "terms below simulation.negligible (0.001) of the MSE; at most simulation.max_batches",
    )
    one.add_argument(
        "--seed",
        type=whole_number(2**63 - 1),
        metavar="N",
        help="seed of the simulation, in place of the file's",
    )
    one.add_argument("--json", action="store_true", help="print JSON, for programs")
    one.add_argument(
        "--output", metavar="FILE.nc", type=filled, help="write the table as netCDF, too"
    )
    dry(one)

    many = command(
        commands,
        "sweep",
        "sweep:sweep",
        "a problem of your own at many values of its fields, by both roads",
        "Reads the file of `sims decompose` with a section `sweep` (`sims schema sweep`: a grid, "
        "random points or a list), and writes one netCDF file, labelled by the fields, and a "
        "figure. What is done is kept: the same command goes on, and a larger sweep begins with "
        "the points of a smaller one.",
    )
    many.add_argument("spec", metavar="SWEEP.yaml", type=filled, help="the problem and the sweep")
    many.add_argument(
        "--set",
        action="append",
        metavar="PATH=VALUES",
        type=filled,
        help="an axis of the grid, several times: heads.bandwidth=0.3:1:5 (low:high:points), "
        "n=256:4096:5:log, heads.kernel=gaussian,softmax",
    )
    many.add_argument("--rel-mcse", type=positive, metavar="R", help="as in `sims decompose`")
    many.add_argument(
        "--seed", type=whole_number(2**63 - 1), metavar="N", help="in place of the file's"
    )
    many.add_argument(
        "--output", metavar="FILE.nc", type=filled,
        help="default: results/sweeps/SWEEP.nc; the figure lies beside it",
    )  # fmt: skip
    parts = many.add_mutually_exclusive_group()
    parts.add_argument(
        "--shard", metavar="i/N", type=filled,
        help="compute the i-th of N parts of about equal work; the same command without it "
        "gathers them",
    )  # fmt: skip
    parts.add_argument(
        "--shards", metavar="N", type=whole_number(1000, 1), default=1,
        help="compute N parts side by side, in processes of their own, and gather them",
    )  # fmt: skip
    dry(many)

    listed = command(
        commands, "experiments", "listing:experiments", "list the experiments",
        "Those of this folder, or where it has none those that came with sims.",
    )  # fmt: skip
    listed.add_argument("--json", action="store_true", help="print JSON, for programs")

    made = command(
        commands, "new", "new:new", "begin an experiment of your own",
        "Writes experiments/NAME/ with its four files: an example that runs as it is.",
    )  # fmt: skip
    made.add_argument("name", metavar="NAME", type=filled, help="of its folder, as of a module")

    claims = command(
        commands,
        "claims",
        "listing:claims",
        "list the papers' claims and the latest verdicts on them",
        "Claims come from papers/*.yaml (of this folder, if it has experiments of its own), "
        "verdicts from results/FIDELITY/ledger.json if there is one, otherwise from "
        "results/published/ledger.json.",
    )
    fidelity(claims)
    claims.add_argument(
        "--paper", metavar="ID", type=filled, help="arXiv id: only the claims of this paper"
    )
    claims.add_argument("--json", action="store_true", help="print JSON, for programs")

    schema = command(
        commands, "schema", "listing:schema", "print the JSON schema of a file that users write"
    )
    schema.add_argument(
        "what",
        nargs="?",
        default="experiment",
        choices=["experiment", "problem", "decompose", "sweep", "paper", "variables"],
        help="which file (default: experiment)",
    )

    whole = command(
        commands,
        "run",
        "steps:run",
        "run one experiment: both roads, verdicts and figure",
        "What `sims.study.run` does from Python. Finished points are kept.",
    )
    experiment(whole)
    dry(whole)
    fidelity(whole)
    whole.add_argument(
        "--seed-offset",
        type=whole_number(OFFSETS),
        default=0,
        metavar="K",
        help="add K to the experiment's seeds",
    )

    every = command(
        commands,
        "reproduce",
        "reproduce:reproduce",
        "run all experiments, or one, through to ledger and report",
        "Plain `snakemake` does the same in a checkout. Results lie in results/FIDELITY; what is "
        "done is kept, and the same command goes on.",
    )
    every.add_argument("experiment", nargs="?", metavar="EXPERIMENT", type=filled, help="only this")
    fidelity(every)

    for name, help_, default in (
        ("simulate", "pipeline: estimate every point of an experiment", "simulation.nc"),
        (
            "gather",
            "pipeline: the simulation's file, of what its shards computed alone",
            "simulation.nc",
        ),
        (
            "plan",
            "pipeline: look at what is there, and say which batches a turn of shards computes",
            "simulation.nc",
        ),
        ("predict", "pipeline: predict every point of an experiment", "theory.nc"),
        ("judge", "pipeline: turn both roads into verdicts", "verdicts.json"),
        (
            "plot",
            "pipeline: draw the figure (PDF, PNG and SVG) and write its caption",
            "figure.pdf",
        ),
    ):
        step = command(commands, name, f"steps:{name}", help_)
        experiment(step)
        fidelity(step)
        step.add_argument(
            "--output",
            metavar="FILE",
            type=filled,
            help=f"default: results/FIDELITY/EXPERIMENT/{default}; the step reads what earlier "
            "steps wrote beside it",
        )
        if name in ("simulate", "gather", "plan", "predict"):
            step.add_argument(
                "--seed-offset",
                type=whole_number(OFFSETS),
                default=0,
                metavar="K",
                help="add K to the experiment's seed: the same run with other draws (of "
                "predictions, only those of learned heads change)",
            )
        if name in ("simulate", "plan"):
            step.add_argument(
                "--turn",
                type=whole_number(6, 1),
                default=1,
                metavar="T",
                help="adaptive sampling by shards goes in turns: turn 1 is what every point gets, "
                "2 to 6 what `sims plan` found open after a look at the turns before",
            )
        if name == "simulate":
            step.add_argument(
                "--shard",
                metavar="i/N",
                type=filled,
                help="compute the i-th of N parts of about equal work and keep its batches; the "
                "same command without it, or `sims gather`, makes the file of all",
            )
    again = command(
        commands,
        "verify",
        "verify:verify",
        "look at results again: seals, completeness, contracts",
        "Changes nothing. Exit code 1 if a file is damaged or missing, a claim has no row in the "
        "ledger, or an experiment was edited after its simulation began or since it was judged.",
    )
    again.add_argument(
        "folder", nargs="?", default="results", metavar="FOLDER", type=filled,
        help="results (default), results/FIDELITY, results/published or results/sweeps",
    )  # fmt: skip

    once_more = command(
        commands,
        "replay",
        "verify:replay",
        "compute a row of the ledger again, and compare",
        "Runs the row's experiment as its result says it was, in a folder of its own. Exit code 1 "
        "if effect or interval differ. The ledger is that of results/FIDELITY, or the published "
        "one if there is none.",
    )
    once_more.add_argument("row", metavar="ROW", type=filled, help="its number, or a claim's id")
    once_more.add_argument(
        "regime", nargs="?", metavar="REGIME", type=filled, help="where the claim has several"
    )
    once_more.add_argument(
        "--rtol", type=positive, default=1e-9, metavar="R",
        help="largest difference, as a share of the number (default: 1e-9; another processor or "
        "version may round otherwise)",
    )  # fmt: skip
    fidelity(once_more)

    seeds = command(
        commands,
        "seeds",
        "seeds:seeds",
        "judge the ledger again with other seeds",
        "Runs both roads of experiments with every seed moved, those of targets, frames, queries "
        "and learning too, judges them, and says which verdicts turned. Needs a finished run; what "
        "is done is kept if interrupted.",
    )
    fidelity(seeds)
    seeds.add_argument(
        "--count",
        type=whole_number(10_000, 1),
        default=20,
        metavar="N",
        help="how many other seeds (default: 20)",
    )
    seeds.add_argument(
        "--experiment",
        action="append",
        metavar="NAME",
        type=filled,
        help="only this one (may be given several times); the others' verdicts stay those of the "
        "run in Holm's adjustment",
    )
    seeds.add_argument(
        "--same-problems",
        action="store_true",
        help="move the simulation's seeds alone, and keep targets, frames, queries and predictions",
    )

    _views(commands)

    audit = command(
        commands,
        "audit",
        "audit:audit",
        "audit the judgement itself",
        "Plants falsehoods in theory and simulation, each of which must end refuted; judges true "
        "claims over hundreds of runs, which must hardly ever be refuted; and counts how often "
        "intervals cover.",
    )
    fidelity(audit)
    audit.add_argument("--json", action="store_true", help="print JSON, for programs")
    audit.add_argument(
        "--output",
        metavar="FILE",
        type=filled,
        help="default: results/FIDELITY/audit.json; given, only a summary is printed",
    )

    for name, help_, default in (
        ("ledger", "pipeline: gather the verdicts of all experiments", "ledger.json"),
        ("report", "pipeline: write the report, one self-contained page", "report.html"),
    ):
        step = command(commands, name, f"steps:{name}", help_)
        fidelity(step)
        step.add_argument(
            "--output",
            metavar="FILE",
            type=filled,
            help=f"default: results/FIDELITY/{default}",
        )
    published = command(
        commands,
        "publish",
        "publish:publish",
        "copy ledger, report and figures of a run to results/published",
    )
    fidelity(published)
    return parser


def _views(commands: "argparse._SubParsersAction[Parser]") -> None:
    """The commands that look at results and make none."""
    table = command(
        commands,
        "table",
        "tables:table",
        "print an experiment's results as a table",
        "One row a point: its coordinates, and of every scalar the simulated mean, its Monte Carlo "
        "standard error (<term>_mcse) and theory's value (<term>_theory). Needs a finished run.",
    )
    experiment(table)
    fidelity(table)
    table.add_argument(
        "--format", choices=["csv", "md", "latex", "parquet"], default="csv", help="default: csv"
    )
    table.add_argument(
        "--order", choices=["first", "exact"], default="first", help="of theory (default: first)"
    )
    table.add_argument("--output", metavar="FILE", type=filled, help="default: standard output")

    diff = command(
        commands,
        "diff",
        "tables:diff",
        "compare two runs: verdicts that turned, estimates that moved",
        "Compares ledgers, and where both are folders of runs their estimates and effects too, in "
        "joint Monte Carlo standard errors.",
    )
    for name in ("one", "other"):
        diff.add_argument(name, metavar="RUN", type=filled, help="a run's folder, or a ledger.json")

    show = command(commands, "open", "tables:show", "open the report, or an experiment's figure")
    experiment(show, nargs="?")
    fidelity(show)
