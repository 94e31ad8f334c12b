"""The engine beside its peers on the same work, core for core."""

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
        }
    ready, missing = {}, []
    for name, (make, _) in ways.items():
        try:
            ready[name] = make()
        except who.Missing as error:
            missing.append(str(error))
    took = cpu_seconds(ready, repeats)
    return {name: work.evaluations(ways[name][1]) / took[name] for name in ready}, missing


def main(repeats: int = 5, with_peers: bool = True) -> dict[str, float]:
    """Print the table; returns the engine's rate over each other one."""
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
        "queries, gaussian kernel: draws, heads, all pair sums. "
    )
    packages = ("torch", "pykeops") if with_peers and not missing else ()
    note = note + description(*packages) + "".join(f"\n{text}" for text in missing)
    show("Kernel evaluations a CPU second", columns, rows, note)
    return {
        f"engine ÷ {name}, {precision}": rate["engine"] / rate[name]
        for precision, rate in found.items()
        for name in names
        if name != "engine"
    }
