"""The engine beside its peers on the same work, core for core."""

from pathlib import Path

from benchmarks import contestants as who
from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work

REFERENCE = "NumPy"


def rates(work: Work, precision: str, with_peers: bool, repeats: int) -> tuple[dict, list[str]]:
    """Evaluations a CPU second by contestant, and what is missing."""
    many, few = 2 * work.replicates, 4
    ways = {
        "engine": (lambda: who.engine(work, precision, 2), many),
        "jax.vmap": (lambda: who.plain_vmap(work, precision, 2 * few), 2 * few),
        REFERENCE: (lambda: who.numpy_loop(work, precision, few), few),
    }
    if with_peers:
        ways |= {
            "PyTorch": (lambda: who.torch_batched(work, precision, few), few),
            "KeOps": (lambda: who.keops(work, precision, few), few),
            "statsmodels": (lambda: who.statsmodels_regression(work, precision, 1), 1),
        }
    ready, missing = {}, []
    for name, (make, _) in ways.items():
        try:
            ready[name] = make()
        except who.Missing as error:
            missing.append(str(error))
    took = cpu_seconds(ready, repeats)
    return {name: work.evaluations(ways[name][1]) / took[name] for name in ready}, missing


def main(repeats: int = 5, with_peers: bool = True, figure: Path | None = None) -> dict[str, float]:
    """Print the table, and draw it if asked; returns the engine's rate over each other one."""
    work = Work()
    found = {}
    for precision in ("float32", "float64"):
        found[precision], missing = rates(work, precision, with_peers, repeats)
    names = sorted(found["float32"], key=lambda name: -found["float32"][name])
    rows = []
    for name in names:
        cells = [name]
        for precision in found:
            rate = found[precision]
            ratio = rate["engine"] / rate[name]
            cells += [f"{rate[name]:.3g}", f"{ratio:.3g}"]
        rows.append(cells)
    columns = (
        "",
        "float32 evaluations/s",
        "engine is × faster",
        "float64 evaluations/s",
        "engine is × faster",
    )
    note = (
        f"H = {work.heads}, d_k = {work.width}, d = {work.dimension}, n = {work.n}, {work.queries} "
        "queries, gaussian kernel: draws, labels, heads, all pair sums (statsmodels: f̂ alone). "
    )
    packages = ("torch", "pykeops", "statsmodels") if with_peers and not missing else ()
    note = note + description(*packages) + "".join(f"\n{text}" for text in missing)
    show("Kernel evaluations a CPU second", columns, rows, note)
    if figure is not None:
        draw(found, names, figure)
    return {
        f"engine ÷ {name}, {precision}": rate["engine"] / rate[name]
        for precision, rate in found.items()
        for name in names
        if name != "engine"
    }


def draw(found: dict, names: list[str], path: Path) -> None:
    """Bars on a log axis: one group a contestant."""
    from matplotlib.figure import Figure

    from sims import figures

    drawing = Figure(figsize=(5.5, 0.42 * len(names) + 0.9), layout="constrained")
    with figures.style():
        ax = drawing.subplots()
        for i, precision in enumerate(found):
            at = [place + 0.38 * i for place in range(len(names))]
            values = [found[precision][name] for name in names]
            ax.barh(at, values, 0.36, color=figures.PALETTE[i], label=precision)
            for y, value, name in zip(at, values, names, strict=True):
                ratio = found[precision]["engine"] / value
                text = f" {value:.2g}" + ("" if name == "engine" else f"  (1/{ratio:.2g})")
                ax.text(value, y, text, va="center", fontsize=7)
        ax.set_xscale("log")
        ax.set_xlim(right=ax.get_xlim()[1] * 6)
        ax.set_yticks([place + 0.19 for place in range(len(names))], names)
        ax.invert_yaxis()
        ax.set_xlabel("kernel evaluations a CPU second (in brackets: share of the engine's)")
        ax.legend(loc="lower right", frameon=False)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    drawing.savefig(path, dpi=150)
