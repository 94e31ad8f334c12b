# The steps, each a `sims` command. snakemake --config fidelity=smoke|standard|paper experiment=NAME
import sys
from pathlib import Path
from shlex import quote

from sims.errors import InputError
from sims.fingerprint import STEPS, accelerated, also_reads, choose, fingerprint

try:
    FIDELITY, NAMES = choose(config)
    # Snakemake does not see edits of imported modules, so each step has a hash of its own code.
    CODE = {(step, n): fingerprint(step, n, FIDELITY) for step in STEPS for n in NAMES}
except InputError as error:
    print(f"snakemake: {error}", file=sys.stderr)
    sys.exit(2)

ROADS = ["{name}/simulation.nc", "{name}/theory.nc"]
PLOT = ["{name}/figure.pdf", "{name}/figure.png", "{name}/caption.md"]
SUMS = ["ledger.json", "audit.json"]
FILES = {  # step: what it reads, what it writes
    "simulate": ([], ROADS[:1]),
    "predict": ([], ROADS[1:]),
    "judge": (ROADS, ["{name}/verdicts.json"]),
    "plot": ([*ROADS, SUMS[0]], PLOT),
    "audit": ([], SUMS[1:]),
    "ledger": (expand("{name}/verdicts.json", name=NAMES), SUMS[:1]),
    "report": ([*SUMS, *expand(PLOT, name=NAMES)], ["report.html"]),
}
# Several simulations side by side, since each compiles on a single core; a smoke run mostly starts up.
EACH = 1 if FIDELITY == "smoke" else (workflow.resource_settings.cores or 16) // 4 or 1
shell.prefix(f"PATH={quote(str(Path(sys.executable).parent))}:$PATH; ")


rule all:
    input:
        f"results/{FIDELITY}/report.html",


for step, (reads, writes) in FILES.items():

    rule:
        name:
            step
        input:
            [f"results/{FIDELITY}/{path}" for path in reads],
            lambda w, s=step: also_reads(s, w, FIDELITY),
        output:
            main=f"results/{FIDELITY}/{writes[0]}",
            more=[f"results/{FIDELITY}/{path}" for path in writes[1:]],
        log:
            f"results/{FIDELITY}/logs/{writes[0]}.log",
        priority: {"simulate": 2, "predict": 1, "audit": 1}.get(step, 0)
        threads: EACH if step == "simulate" else 1
        resources:
            gpu=int(accelerated() and step == "simulate" and FIDELITY != "smoke"),
        params:
            run=lambda w, step=step: f"{step} {w.get('name', '')} --fidelity {FIDELITY}",
            code=lambda w, s=step: [CODE[s, n] for n in list(w) or NAMES],
        shell:
            "SIMS_HOST_DEVICES={threads} sims {params.run} --output {output.main} 2> >(tee {log} >&2)"
