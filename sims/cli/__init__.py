"""The ``sims`` command. Heavy imports stand inside the commands, so that ``--help`` is instant."""

import argparse
import gc
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from sims import __version__
from sims.errors import InputError
from sims.study.code import FIDELITIES


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all errors of the suite."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 2, with one line on stderr, for bad input."""
    options = _parser().parse_args(arguments)
    _keep_compilations()
    # Importing and tracing make hardly any garbage; looking for it takes a tenth of a start.
    gc.set_threshold(100_000, 20, 100)
    module, function = options.run.split(":")
    try:
        getattr(import_module(f"sims.cli.{module}"), function)(options)
        sys.stdout.flush()
    except InputError as error:
        print(f"sims {options.command}: {error}", file=sys.stderr)
        return 2
    except (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        print(f"sims {options.command}: {error.filename}: got {error.strerror!r}; "
              "allowed: a file that can be written", file=sys.stderr)  # fmt: skip
        return 2
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads on: not worth a message
        return 0
    except KeyboardInterrupt:
        print(f"sims {options.command}: interrupted; finished points are kept", file=sys.stderr)
        return 130
    return 0


def _keep_compilations() -> None:
    """Let the steps of a run, and later runs, share what XLA compiled (JAX's own settings win).

    The folder is of one host: compiled code fits the processor it was made for.
    """
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return  # no home, no cache
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache / "sims" / platform.node()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="sims",
        description="Multi-head attention as an ensemble of Nadaraya-Watson estimators: theory "
        "and simulation of the bias-variance-covariance decomposition, side by side.",
    )
    parser.add_argument("--version", action="version", version=f"sims {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    one = _command(
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
    one.add_argument("spec", metavar="SPEC.yaml", help="the problem")
    one.add_argument(
        "--rel-mcse",
        type=float,
        metavar="R",
        help="simulate until every term's MCSE is below this share of it, such as 0.01, but for "
        "terms below simulation.negligible (0.001) of the MSE; at most simulation.max_batches",
    )
    one.add_argument("--seed", type=int, help="seed of the simulation, in place of the file's")
    one.add_argument("--json", action="store_true", help="print JSON, for programs")

    listed = _command(
        commands, "experiments", "listing:experiments", "list the experiments of this folder"
    )
    listed.add_argument("--json", action="store_true", help="print JSON, for programs")

    claims = _command(
        commands,
        "claims",
        "listing:claims",
        "list the papers' claims and the latest verdicts on them",
        "Claims come from papers/*.yaml of this folder, verdicts from "
        "results/FIDELITY/ledger.json if there is one, otherwise from "
        "results/published/ledger.json.",
    )
    _fidelity(claims)
    claims.add_argument("--paper", metavar="ID", help="arXiv id: only the claims of this paper")
    claims.add_argument("--json", action="store_true", help="print JSON, for programs")

    schema = _command(
        commands, "schema", "listing:schema", "print the JSON schema of a file that users write"
    )
    schema.add_argument(
        "what",
        nargs="?",
        default="experiment",
        choices=["experiment", "problem", "decompose", "paper"],
        help="which file (default: experiment)",
    )

    whole = _command(
        commands,
        "run",
        "steps:run",
        "run one experiment: both roads, verdicts and figure",
        "What `sims.study.run` does from Python. Finished points are kept.",
    )
    whole.add_argument("experiment", metavar="EXPERIMENT", help="its name, or its folder")
    _fidelity(whole)
    whole.add_argument(
        "--seed-offset", type=_whole, default=0, metavar="K", help="add K to the experiment's seeds"
    )

    for name, help_, default in (
        ("simulate", "pipeline: estimate every point of an experiment", "simulation.nc"),
        ("predict", "pipeline: predict every point of an experiment", "theory.nc"),
        ("judge", "pipeline: turn both roads into verdicts", "verdicts.json"),
        ("plot", "pipeline: draw the figure (PDF and PNG) and write its caption", "figure.pdf"),
    ):
        step = _command(commands, name, f"steps:{name}", help_)
        step.add_argument("experiment", metavar="EXPERIMENT", help="its name, or its folder")
        _fidelity(step)
        step.add_argument(
            "--output",
            metavar="FILE",
            help=f"default: results/FIDELITY/EXPERIMENT/{default}; the step reads what earlier "
            "steps wrote beside it",
        )
        if name in ("simulate", "predict"):
            step.add_argument(
                "--seed-offset",
                type=_whole,
                default=0,
                metavar="K",
                help="add K to the experiment's seed: the same run with other draws (of "
                "predictions, only those of learned heads change)",
            )
    seeds = _command(
        commands,
        "seeds",
        "seeds:seeds",
        "judge the ledger again with other seeds",
        "Simulates experiments with seeds 1, 2, … added to their own, judges them, and says which "
        "verdicts turned. Needs a finished run; what is done is kept if interrupted.",
    )
    _fidelity(seeds)
    seeds.add_argument(
        "--count", type=_whole, default=20, metavar="N", help="how many other seeds (default: 20)"
    )
    seeds.add_argument(
        "--experiment",
        action="append",
        metavar="NAME",
        help="only this one (may be given several times); the others' verdicts stay those of the "
        "run in Holm's adjustment",
    )

    audit = _command(
        commands,
        "audit",
        "audit:audit",
        "audit the judgement itself",
        "Plants falsehoods in theory and simulation, each of which must end refuted; judges true "
        "claims over hundreds of runs, which must hardly ever be refuted; and counts how often "
        "intervals cover.",
    )
    _fidelity(audit)
    audit.add_argument("--json", action="store_true", help="print JSON, for programs")
    audit.add_argument(
        "--output",
        metavar="FILE",
        help="default: results/FIDELITY/audit.json; given, only a summary is printed",
    )

    for name, help_, default in (
        ("ledger", "pipeline: gather the verdicts of all experiments", "ledger.json"),
        ("report", "pipeline: write the report, one self-contained page", "report.html"),
    ):
        step = _command(commands, name, f"steps:{name}", help_)
        _fidelity(step)
        step.add_argument("--output", metavar="FILE", help=f"default: results/FIDELITY/{default}")
    published = _command(
        commands,
        "publish",
        "publish:publish",
        "copy ledger, report and figures of a run to results/published",
    )
    _fidelity(published)
    return parser


def _whole(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: a whole number, 0 or more")
    return int(text)


def _command(
    commands: "argparse._SubParsersAction[_Parser]",
    name: str,
    run: str,
    help: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    text = help[0].upper() + help[1:] + "." + (f" {description}" if description else "")
    parser = commands.add_parser(name, help=help, description=text)
    parser.set_defaults(run=run)
    return parser


def _fidelity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fidelity",
        default="standard",
        choices=FIDELITIES,
        help="smoke: a minute or two; standard: minutes on 4 cores (default); paper: a cluster",
    )
