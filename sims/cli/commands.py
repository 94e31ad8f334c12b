"""The commands of ``sims`` and their options. Each command imports its code when called."""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Context, Exit, Option, Typer
from typer.core import TyperCommand, TyperOption

from sims import __version__
from sims.base import places
from sims.base.errors import InputError

app = Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


class Command(TyperCommand):
    """A command that refuses several values of an option that takes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The remaining words, as Typer reads them.

        Raises:
            InputError: an option of one value is given twice: all but the last would be ignored.
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
    Option(help="Size of the run: a minute or two, minutes on 4 cores, or a cluster"),
]
Dry = Annotated[bool, Option("--dry", help="Print the plan, its time and its memory, and stop")]
Json = Annotated[bool, Option("--json", help="Print JSON, for programs")]
Precision = Annotated[
    float | None,
    Option(
        help="Relative MCSE to reach, such as 0.01; terms below simulation.negligible (0.001) of "
        "the MSE need not reach it, and simulation.max_batches ends it"
    ),
]
AllowCode = Annotated[
    bool,
    Option("--allow-code", help="Run Python files that the file names: code of people you trust"),
]
Seed = Annotated[int | None, Option(help="Random seed of the simulation (overrides the file)")]


HELP = """Test claims about multi-head attention as an ensemble of Nadaraya-Watson estimators.

\b
  sims decompose problem.yaml     one problem by theory and by simulation
  sims run rates                  how often a claim is true, over random problems
  sims inspect model.safetensors  the heads of a trained model
"""
"""Help of the whole command; after \\b lines stay as they are."""


def _print_version(requested: bool) -> None:
    if requested:
        print(f"sims {__version__}")
        raise Exit


@app.callback(help=HELP, invoke_without_command=True)
def sims(
    context: Context,
    version: Annotated[
        bool, Option("--version", callback=_print_version, help="Print the version and stop")
    ] = False,
) -> None:
    """Print the help where no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _given(**options: Any) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


@app.command()
def decompose(
    spec: Annotated[
        str,
        Argument(help="File of the problem (`sims schema decompose`), or house#17, one of a law"),
    ],
    rel_mcse: Precision = None,
    seed: Seed = None,
    json: Json = False,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Decompose the error of one problem by both methods.

    Prints every term of the bias-variance-covariance decomposition by theory and by simulation,
    with the Monte Carlo standard error (MCSE), the gap between the two and how far theory can be
    trusted. Theory is first order in 1/n (Gaussian and softmax kernels, Gaussian designs) unless
    the file says `theory: {order: exact}` (any n, kernel and design) or `auto`. `sims sweep` of the
    same file writes the terms as netCDF.
    """
    from sims.cli import decompose

    settings = _given(rel_mcse=rel_mcse, seed=seed)
    decompose.decompose(spec, settings, json, allow_code, dry)


@app.command()
def sweep(
    spec: Annotated[str, Argument(help="File of the problem and the sweep (`sims schema sweep`)")],
    set: Annotated[
        list[str] | None,
        Option(
            help="Axis of the grid, repeatable: heads.bandwidth=0.3:1:5 (low:high:points), "
            "n=256:4096:5:log, heads.kernel=gaussian,softmax"
        ),
    ] = None,
    rel_mcse: Precision = None,
    seed: Seed = None,
    output: Annotated[
        Path | None,
        Option(help="Output FILE.nc, with a figure of the same name (default: results/sweeps)"),
    ] = None,
    shard: Annotated[
        str | None, Option(help="Part i/N to compute and keep; without it, the file is written")
    ] = None,
    shards: Annotated[
        int | None,
        Option(min=2, max=10_000, help="Number of parts to compute at once, by snakemake"),
    ] = None,
    options: Annotated[
        list[str] | None,
        Argument(help="Options of snakemake after --, with --shards: --workflow-profile slurm"),
    ] = None,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Decompose a problem at many values of its fields.

    Writes one netCDF file, labelled by the fields, and a figure. Finished points are kept: the same
    command continues where it was interrupted.
    """
    from sims.cli import sweep

    simulation = _given(rel_mcse=rel_mcse, seed=seed)
    snakemake = options or []
    sweep.sweep(spec, set or [], simulation, output, shard, shards, snakemake, allow_code, dry)


@app.command()
def experiments(json: Json = False) -> None:
    """List the experiments.

    Those of this folder, or if it has none those that came with sims.
    """
    from sims.cli.claims import list_experiments

    list_experiments(json)


@app.command()
def run(
    experiment: Name,
    fidelity: Fidelity = "standard",
    seed_offset: Annotated[
        int, Option(min=0, max=10**12, help="Number added to the experiment's seeds: other draws")
    ] = 0,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Run one experiment: simulation, theory, answers and figure.

    The same as `sims.study.run` in Python. Finished units are kept. A folder outside experiments/
    runs its code only with --allow-code.
    """
    from sims.cli import steps

    steps.run(experiment, fidelity, seed_offset, allow_code, dry)


@app.command()
def claims(
    fidelity: Fidelity = "standard",
    paper: Annotated[
        str | None, Option(help="arXiv id of the paper to list (default: all)")
    ] = None,
    json: Json = False,
) -> None:
    """List the papers' claims with their latest answers.

    Claims come from papers/*.yaml (of this folder, if it has papers), answers from answers.json in
    results/FIDELITY if there is such a file, otherwise in results/published.
    """
    from sims.cli.claims import list_claims

    list_claims(fidelity, paper, json)


@app.command()
def new(
    name: Annotated[str, Argument(help="Name of its folder (a valid Python module name)")],
    statistic: Annotated[
        bool, Option("--statistic", help="Include a statistic of your own, and its test")
    ] = False,
) -> None:
    """Create a new experiment.

    Writes experiments/NAME/: an example that runs as it is.
    """
    from sims.cli.new import begin_experiment

    begin_experiment(name, statistic)


@app.command()
def schema(
    file: Annotated[
        Literal["experiment", "problem", "decompose", "sweep", "paper", "variables"],
        Argument(help="Kind of file"),
    ] = "experiment",
) -> None:
    """Print the JSON schema of a file that users write."""
    from sims.cli.schema import print_schema

    print_schema(file)


@app.command()
def inspect(
    models: Annotated[
        list[str],
        Argument(
            metavar="MODEL...",
            help="Safetensors file, its .index.json, or a folder; several are checkpoints",
        ),
    ],
    config: Annotated[
        str | None, Option(help="Path of config.json (default: next to the model)")
    ] = None,
    activations: Annotated[
        list[str] | None,
        Option(
            help="Inputs as npz: attention module, or number of a layer, to (sequence, token, d) "
            "or a covariance (d, d); give it twice with --compare"
        ),
    ] = None,
    heads: Annotated[int | None, Option(help="Number of heads, if no config gives it")] = None,
    attention: Annotated[
        str | None, Option(help="Mask, causal or full, if no config gives it")
    ] = None,
    tolerance: Annotated[
        float, Option(help="Output error up to which heads count as redundant")
    ] = 0.01,
    compare: Annotated[
        str | None, Option(help="Second model, or a file that --output wrote")
    ] = None,
    output: Annotated[Path | None, Option(help="Output FILE.nc, with a figure")] = None,
    fail_above: Annotated[
        list[str] | None,
        Option(help="Limit NAME=NUMBER, repeatable: exit code 1 if a layer's number is above it"),
    ] = None,
    json: Json = False,
) -> None:
    """Report on the attention heads of a trained model.

    Weights give overlaps of key subspaces compared with random ones, diversity indices and ranks.
    Inputs of the attention layers (--activations) give effective keys, noise correlation, what
    merging or pruning heads costs in output error, and how far keys can be compressed, with
    standard errors over sequences. Nothing is unpickled.
    """
    from sims.cli.inspect import Request, run

    rules = {"heads": heads, "attention": attention, "tolerance": tolerance}
    request = Request(
        models, config, activations or [], compare, output, rules, fail_above or [], json
    )
    if not run(request):
        raise Exit(1)


@app.command()
def advise(
    data: Annotated[
        Path | None, Option(help="Table of rows: .csv with a header, or .npz with X, y, groups")
    ] = None,
    target: Annotated[str | None, Option(help="Column of the .csv to predict")] = None,
    groups: Annotated[
        str | None, Option(help="Column of the .csv whose equal rows are left out together")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Random seed of frames and splits")] = None,
    n: Annotated[int | None, Option(help="Number of keys: advice from theory alone")] = None,
    budget: Annotated[int | None, Option(help="Budget D = H·d_k (with --n)")] = None,
    noise: Annotated[
        float | None, Option(help="Label noise σ, for a target of variance 1 (--n, --context)")
    ] = None,
    smoothness: Annotated[
        float | None, Option(help="Matérn smoothness β (with --n; default: squared exponential)")
    ] = None,
    context: Annotated[
        str | None, Option(help="Contexts 4k:128k: tuned at 4,096 keys, used at 131,072")
    ] = None,
    rule: Annotated[
        str | None, Option(help="Weight rule: gaussian, softmax (--n); softmax, … (--context)")
    ] = None,
    json: Json = False,
) -> None:
    """Advise on heads, head dimension, weight rule and temperature.

    With --data from leave-one-out errors, compared with other methods; with --n, --budget and
    --noise from theory; with --context from the cost of a kept temperature. Each piece of advice
    names the published answers that it rests on.
    """
    from sims.cli.advise import advise

    options = _given(
        data=data,
        target=target,
        groups=groups,
        seed=seed,
        n=n,
        budget=budget,
        noise=noise,
        smoothness=smoothness,
        context=context,
        rule=rule,
    )
    advise(options, json)


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
