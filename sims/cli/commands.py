"""The commands of ``sims`` and their options. What they do is imported when they are called."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option, Typer

from sims import __version__
from sims.places import place

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
Seed = Annotated[int | None, Option(help="of the simulation, in place of the file's")]


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
    spec: Annotated[str, Argument(help="the problem: see `sims schema decompose`")],
    rel_mcse: Precision = None,
    seed: Seed = None,
    json: Json = False,
    output: Annotated[Path | None, Option(help="write the table as netCDF, too: FILE.nc")] = None,
    dry: Dry = False,
) -> None:
    """Decompose the error of one problem by both roads.

    Prints every term of the bias-variance-covariance decomposition by theory and by simulation,
    with the Monte Carlo standard error (MCSE), the gap between the two and how far theory can be
    trusted. Theory is first order in 1/n (gaussian and softmax kernels, Gaussian designs) unless
    the file says `theory: {order: exact}` (any n, kernel and design) or `auto`.
    """
    from sims.cli import decompose

    decompose.decompose(spec, rel_mcse, seed, json, output, dry)


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
        str | None, Option(help="compute the i-th of N parts: i/N; without it they are gathered")
    ] = None,
    shards: Annotated[
        int, Option(min=1, max=1000, help="compute N parts side by side, and gather them")
    ] = 1,
    dry: Dry = False,
) -> None:
    """Decompose a problem at many values of its fields.

    Writes one netCDF file, labelled by the fields, and a figure. What is done is kept: the same
    command goes on, and a larger sweep begins with the points of a smaller one.
    """
    from sims.cli import sweep

    sweep.sweep(spec, set or [], rel_mcse, seed, output, shard, shards, dry)


@app.command()
def run(
    experiment: Name,
    fidelity: Fidelity = "standard",
    seed_offset: Annotated[
        int, Option(min=0, max=10**12, help="added to the experiment's seeds: other draws")
    ] = 0,
    dry: Dry = False,
) -> None:
    """Run one experiment: both roads, verdicts and figure.

    What `sims.study.run` does from Python. Finished points are kept.
    """
    from sims.cli import steps

    steps.run(experiment, fidelity, seed_offset, dry)


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
    from sims.cli import listing

    listing.table(experiment, fidelity, order, latex)


@app.command()
def experiments(json: Json = False) -> None:
    """List the experiments.

    Those of this folder, or where it has none those that came with sims.
    """
    from sims.cli import listing

    listing.experiments(json)


@app.command()
def claims(
    fidelity: Fidelity = "standard",
    paper: Annotated[str | None, Option(help="arXiv id: only the claims of this paper")] = None,
    json: Json = False,
) -> None:
    """List the papers' claims and the latest verdicts on them.

    Claims come from papers/*.yaml (of this folder, if it has experiments of its own), verdicts from
    results/FIDELITY/ledger.json if there is one, otherwise from results/published/ledger.json.
    """
    from sims.cli import listing

    listing.claims(fidelity, paper, json)


@app.command()
def new(name: Annotated[str, Argument(help="of its folder, as of a module")]) -> None:
    """Begin an experiment of your own.

    Writes experiments/NAME/: an example that runs as it is.
    """
    from sims.cli import listing

    listing.new(name)


@app.command()
def schema(
    what: Annotated[
        Literal["experiment", "problem", "decompose", "sweep", "paper", "variables"],
        Argument(help="which file"),
    ] = "experiment",
) -> None:
    """Print the JSON schema of a file that users write."""
    from sims.cli import listing

    listing.schema(what)


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
