"""Layers, norms and MLPs on drawn tokens: ranks, residuals and growth, all as they are."""

from sims.montecarlo import Sampler
from sims.study.experiment import Experiment
from sims.study.stacking import Scalar
from sims.study.units import SampledUnit

from . import depth, ranking, symmetry
from .cases import REGIMES


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A unit a regime of each part. What a batch holds is in its sampler's own module."""
    settings = experiment.settings
    found: dict[str, SampledUnit] = {}

    def add(name: str, sampler: Sampler, part: str, many: int | None = None, **at: Scalar) -> None:
        coordinates = dict.fromkeys(("variance", "d", "n", "scale", "depth")) | {"part": part} | at
        # Streams tell units apart, which would share their draws otherwise.
        found[name] = SampledUnit(sampler, coordinates, many, (len(found),))

    for regime in REGIMES:
        add(f"norm, {regime}", ranking.normed_ranks(regime), "norm")
    add("search", ranking.search(settings["search"]), "search")
    for name, own in settings["depths"].items():
        base = settings["tokens"] | {k: own[k] for k in ("d",) if k in own}
        add(
            name,
            depth.layers(own, base),
            "depth",
            own.get("replicates"),
            d=base["d"],
            n=base["n"],
            **{k: own[k] for k in ("variance", "scale", "depth") if k in own},
        )
    add("one layer", depth.one_layer(settings["one_layer"]), "one layer")
    for name, value in settings["simplex"]["values"].items():
        add(name, depth.simplex(settings["simplex"], value), "simplex")
    add("kept", ranking.kept_ranks(settings["kept"]), "kept")
    for n, d in settings["tails"]["sizes"]:
        for name, skip in (("residual", 1.0), ("attention alone", 0.0)):
            sampler = ranking.tails(n, d, skip, settings["tails"])
            many = settings["tails"]["replicates"]
            add(f"tail, {name}, n={n} d={d}", sampler, "tail", many, n=n, d=d)
    add("span", ranking.spans(settings["span"]), "span")
    for name in ("gauges", "spectra", "channels", "entropies"):
        own = settings["symmetry"][name]
        add(name, getattr(symmetry, name)(own), "symmetry", own.get("replicates"))
    return found
