"""The commands of ``sims`` and their options. Each command imports its code when called.

Help begins with examples; click keeps the line breaks of a paragraph that begins with \\b.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Context, Exit, Option, Typer

from sims.cli.arguments import AllowCode, Command, Dry, Fidelity, Json, Name, Precision, Seed

app = Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

HELP = """Test claims about multi-head attention as an ensemble of Nadaraya-Watson estimators.

\b
  sims decompose problem.yaml     one problem by theory and by simulation
  sims run rates                  how often a claim holds, over random problems
  sims inspect model.safetensors  report on the heads of a trained model
"""
"""Help of ``sims``."""


def _print_version(requested: bool) -> None:
    if requested:
        from sims import __version__

        print(f"sims {__version__}")
        raise Exit


@app.callback(help=HELP, invoke_without_command=True)
def sims(
    context: Context,
    version: Annotated[
        bool, Option("--version", callback=_print_version, help="Print the version and stop")
    ] = False,
) -> None:
    """Print the help if no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _given(**options: Any) -> dict[str, Any]:
    """Options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


@app.command()
def decompose(
    spec: Annotated[
        str,
        Argument(help="Problem file (see `sims schema decompose`), or EXPERIMENT#INDEX"),
    ],
    rel_mcse: Precision = None,
    seed: Seed = None,
    json: Json = False,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Decompose the error of one problem by both methods.

    \b
      sims decompose problem.yaml                   theory and simulation
      sims decompose problem.yaml --dry             expected time and memory
      sims decompose house#17                       problem 17 of a law

    Prints every term of the bias-variance-covariance decomposition by theory and by simulation,
    with the Monte Carlo standard error (MCSE), the gap between the two and the range of theory.
    Theory is first order in 1/n (Gaussian and softmax kernels, Gaussian designs) unless the file
    says `theory: {order: exact}` (any n, kernel and design) or `auto`. `sims sweep` writes the
    terms of the same file as netCDF.
    """
    from sims.cli import decompose

    settings = _given(rel_mcse=rel_mcse, seed=seed)
    decompose.decompose(spec, settings, json, allow_code, dry)


@app.command()
def sweep(
    spec: Annotated[str, Argument(help="Problem or sweep file (see `sims schema sweep`)")],
    set: Annotated[
        list[str] | None,
        Option(
            help="Axis of the grid (repeatable): heads.bandwidth=0.3:1:5 (low:high:points), "
            "n=256:4096:5:log or heads.kernel=gaussian,softmax"
        ),
    ] = None,
    rel_mcse: Precision = None,
    seed: Seed = None,
    output: Annotated[
        Path | None,
        Option(help="Output FILE.nc; the figure has the same name (default: in results/sweeps)"),
    ] = None,
    shard: Annotated[str | None, Option(help="Compute part i of N only, given as i/N")] = None,
    shards: Annotated[
        int | None,
        Option(min=2, max=10_000, help="Compute this number of parts in parallel, by Snakemake"),
    ] = None,
    options: Annotated[
        list[str] | None,
        Argument(help="Options of Snakemake after --, with --shards"),
    ] = None,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Decompose a problem at many values of its fields.

    \b
      sims sweep sweep.yaml
      sims sweep problem.yaml --set heads.bandwidth=0.3:1:5 --set n=64,256
      sims sweep sweep.yaml --shards 8 -- --workflow-profile slurm

    Writes one netCDF file, labelled by the fields, and a figure. Finished points are kept, so the
    same command resumes an interrupted run.
    """
    from sims.cli import sweep

    simulation = _given(rel_mcse=rel_mcse, seed=seed)
    snakemake = options or []
    sweep.sweep(spec, set or [], simulation, output, shard, shards, snakemake, allow_code, dry)


@app.command()
def experiments(json: Json = False) -> None:
    """List the experiments.

    \b
      sims experiments
      sims experiments --json

    Lists those in ./experiments, or those installed with sims if there are none.
    """
    from sims.cli.claims import list_experiments

    list_experiments(json)


@app.command()
def run(
    experiment: Name,
    fidelity: Fidelity = "standard",
    seed_offset: Annotated[
        int,
        Option(min=0, max=10**12, help="Number added to the experiment's seeds, for fresh draws"),
    ] = 0,
    allow_code: AllowCode = False,
    dry: Dry = False,
) -> None:
    """Run one experiment: simulation, theory, answers and figure.

    \b
      sims run rates --fidelity smoke               about a minute
      sims run house --dry                          the plan only

    Equals `sims.study.running` in Python. Finished units are kept, so the same command resumes an
    interrupted run. Code in a folder outside experiments/ runs only with --allow-code.
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
    """List the papers' claims with your answers and the published ones.

    \b
      sims claims --paper 2605.20271                one paper
      sims claims --fidelity smoke                  answers of your last smoke run

    Claims come from ./papers, or from the installed papers. Answers of your runs in
    results/FIDELITY come first; published ones follow, to the questions that you have not run.
    """
    from sims.cli.claims import list_claims

    list_claims(fidelity, paper, json)


@app.command()
def protocol(
    experiment: Annotated[
        str | None, Argument(help="Name of the experiment, or its folder (default: all)")
    ] = None,
    output: Annotated[Path | None, Option(help="Output FILE.md (default: standard output)")] = None,
) -> None:
    """Write the protocol of an experiment before it is run.

    \b
      sims protocol rates
      sims protocol house --output house.md

    The fields are those of the OSF preregistration template; they name aims, data-generating
    mechanisms, estimands, methods and performance measures (ADEMP). All facts come from the
    experiment's file and the papers' files.
    """
    from sims.cli.claims import write_protocol

    write_protocol(experiment, output)


@app.command()
def new(
    name: Annotated[str, Argument(help="Name of its folder: a valid Python module name")],
    statistic: Annotated[
        bool, Option("--statistic", help="Include your own statistic and its test")
    ] = False,
) -> None:
    """Create a new experiment.

    \b
      sims new mine && sims run mine
      sims new mine --statistic                     with your own statistic and its test

    Writes experiments/NAME/, an example that runs unchanged.
    """
    from sims.cli.new import begin_experiment

    begin_experiment(name, statistic)


@app.command()
def schema(
    file: Annotated[
        Literal["experiment", "problem", "decompose", "sweep", "paper", "variables"],
        Argument(help="Kind of file to describe"),
    ] = "experiment",
) -> None:
    """Print the JSON schema of an input file.

    \b
      sims schema problem                           fields of a problem
      sims schema experiment > schema.json          for your editor
    """
    from sims.cli.schema import print_schema

    print_schema(file)


@app.command()
def inspect(
    model: Annotated[str, Argument(help="File .safetensors or .gguf, an .index.json, or a folder")],
    config: Annotated[
        str | None, Option(help="Path of config.json (default: next to the model)")
    ] = None,
    activations: Annotated[
        list[str] | None,
        Option(
            help="Inputs as npz: layer number or attention module to an array (sequence, token, d) "
            "or a covariance (d, d); a second file belongs to --compare"
        ),
    ] = None,
    heads: Annotated[
        int | None, Option(help="Number of heads, if the config does not give it")
    ] = None,
    attention: Annotated[
        str | None, Option(help="Mask, causal or full, if the config does not give it")
    ] = None,
    tolerance: Annotated[
        float, Option(help="Largest output error of a redundant head, as a share of variance")
    ] = 0.01,
    compare: Annotated[
        str | None, Option(help="Second model, or a report written by --output")
    ] = None,
    output: Annotated[Path | None, Option(help="Output FILE.nc, with a figure")] = None,
    fail_above: Annotated[
        list[str] | None,
        Option(help="Limit NAME=NUMBER (repeatable): exit code 1 if any layer exceeds it"),
    ] = None,
    json: Json = False,
) -> None:
    """Report on the attention heads of a trained model.

    \b
      sims inspect model.safetensors                weights only
      sims inspect model --activations x.npz --output report.nc
      sims inspect model --activations x.npz --fail-above redundant_share=0.2
      sims inspect model --compare report.nc        differences from a written report

    The first line says which heads can be removed. From weights: overlaps of key subspaces, ranks
    and alignment of output maps. From inputs of the attention layers (--activations): effective
    keys, what an average of patterns and of outputs keeps, the output error of merging or pruning
    heads, and the rank of compressed keys, with standard errors. Nothing is unpickled.
    """
    from sims.cli.inspect import run

    rules = {"heads": heads, "attention": attention, "tolerance": tolerance}
    if not run(model, config, activations or [], compare, output, rules, fail_above or [], json):
        raise Exit(1)


@app.command()
def advise(
    data: Annotated[
        Path | None,
        Option(help="Data: a .csv file with a header, or an .npz file with X, y and groups"),
    ] = None,
    target: Annotated[str | None, Option(help="Column of the .csv to predict")] = None,
    groups: Annotated[
        str | None, Option(help="Column of the .csv that names groups, each left out as a unit")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Random seed of frames and splits")] = None,
    n: Annotated[int | None, Option(help="Number of keys, for advice from theory")] = None,
    budget: Annotated[int | None, Option(help="Budget D = H·d_k (with --n)")] = None,
    noise: Annotated[
        float | None, Option(help="Label noise σ for a target of variance 1 (with --n)")
    ] = None,
    smoothness: Annotated[
        float | None, Option(help="Matérn smoothness β (with --n; default: squared exponential)")
    ] = None,
    context: Annotated[
        str | None,
        Option(help="Numbers of keys SHORT:LONG: 4k:128k is tuned at 4,096 and used at 131,072"),
    ] = None,
    rule: Annotated[
        str | None,
        Option(help="Weight rule: gaussian or softmax with --n; also sparse rules with --context"),
    ] = None,
    json: Json = False,
) -> None:
    """Advise on heads, head dimension, weight rule and temperature.

    \b
      sims advise --data train.csv --target y       heads for your data
      sims advise --n 16384 --budget 64 --noise 2   a split of a budget
      sims advise --context 4k:128k --rule softmax  a longer context

    --data compares leave-one-out errors with other methods; --n, --budget and --noise apply theory;
    --context gives the cost of keeping a temperature. Each piece of advice names the published
    answers that support it.
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
    """Run one step of the pipeline, as the Snakefile calls it."""
    from sims.cli import steps

    steps.step(name, experiment, fidelity, output, part)


for registered in app.registered_commands:
    registered.cls = Command
