"""Arguments that several commands of ``sims`` have in common."""

import argparse
from typing import Any

from sims.cli.options import Parser, filled
from sims.places import place
from sims.study.code import EXPERIMENTS, FIDELITIES


def command(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    run: str,
    help: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    """A command of ``sims``, run by the function named ``module:function`` of this package."""
    whole = help[0].upper() + help[1:] + "." + (f" {description}" if description else "")
    parser = commands.add_parser(name, help=help, description=whole, allow_abbrev=False)
    parser.set_defaults(run=run, parser=parser)
    return parser


def experiment(parser: argparse.ArgumentParser, **options: Any) -> None:
    """An experiment by its name, which the shell completes."""
    action = parser.add_argument(
        "experiment", metavar="EXPERIMENT", type=filled, help="its name, or its folder", **options
    )
    action.completer = _names  # type: ignore[attr-defined]


def _names(**_: object) -> list[str]:
    """What the shell completes the name of an experiment to."""
    return sorted(path.parent.name for path in place(EXPERIMENTS).glob("*/experiment.yaml"))


def dry(parser: argparse.ArgumentParser) -> None:
    """The option that runs nothing."""
    parser.add_argument(
        "--dry",
        action="store_true",
        help="only say what would be done, in about what time and memory, and what is impossible",
    )


def fidelity(parser: argparse.ArgumentParser) -> None:
    """How much is simulated."""
    parser.add_argument(
        "--fidelity",
        default="standard",
        choices=FIDELITIES,
        help="smoke: a minute or two; standard: minutes on 4 cores (default); paper: a cluster",
    )
