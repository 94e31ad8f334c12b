"""Arguments and options that several commands of ``sims`` have."""

from typing import Annotated, Any, Literal

from typer import Argument, Option
from typer.core import TyperCommand, TyperOption

from sims.base import places
from sims.base.errors import InputError


class Command(TyperCommand):
    """A command that refuses two values of an option that takes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remaining arguments, as Typer reads them.

        Raises:
            InputError: an option that takes one value occurs twice; Typer would use the last one.
        """
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            single = isinstance(option, TyperOption) and not option.multiple and not option.is_flag
            if single and given.count(option) > 1 and not ctx.resilient_parsing:
                raise InputError(option.opts[0], f"{given.count(option)} values", "one value")
        return super().parse_args(ctx, args)


Name = Annotated[
    str, Argument(help="Name of the experiment, or its folder", autocompletion=places.experiments)
]
Fidelity = Annotated[
    Literal["smoke", "standard", "paper"],
    Option(help="Size of the run: smoke (1 to 2 minutes), standard (minutes), paper (a cluster)"),
]
Dry = Annotated[bool, Option("--dry", help="Print the plan and stop")]
Json = Annotated[bool, Option("--json", help="Print JSON, for programs")]
Precision = Annotated[
    float | None,
    Option(
        help="Target relative MCSE, such as 0.01; terms below simulation.negligible (0.001) of "
        "the MSE are exempt; simulation.max_batches limits the run"
    ),
]
AllowCode = Annotated[
    bool,
    Option("--allow-code", help="Run Python code that the file or folder names, if you trust it"),
]
Seed = Annotated[int | None, Option(help="Random seed of the simulation (overrides the file)")]
