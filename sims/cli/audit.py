"""``sims audit``: does the judgement find planted falsehoods, and leave true claims alone?"""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from sims.cli.options import writable
from sims.files import write_json

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "planted": {"replicates": 64, "batches": 768, "costly": False},
        "calibration": {"runs": 60, "batches": 64, "replicates": 16, "own": False},
        "tails": 20_000,
    },
    "standard": {
        "planted": {"replicates": 64, "batches": 1024, "costly": True},
        "calibration": {"runs": 500, "batches": 256, "replicates": 4, "own": True},
        "tails": 200_000,
    },
    "paper": {
        "planted": {"replicates": 64, "batches": 8192, "costly": True},
        "calibration": {"runs": 5000, "batches": 512, "replicates": 4, "own": True},
        "tails": 2_000_000,
    },
}


def audit(options: Namespace) -> None:
    """Run both parts, write ``audit.json``, and print what it says."""
    from sims.audit import calibrate, plant, tails

    sizes = SIZES[options.fidelity]
    path = writable(Path(options.output or Path("results", options.fidelity, "audit.json")))
    if options.fidelity == "smoke":
        import jax

        # Compiling is most of the work where so little is run.
        jax.config.update("jax_disable_most_optimizations", True)
    outcome = {
        "sizes": sizes,
        "planted": plant(sizes["planted"]),
        **calibrate(sizes["calibration"]),
        "tails": tails(sizes["tails"]),
    }
    write_json(outcome, path, f"audit.json of {options.fidelity}")
    if options.json:
        print(json.dumps(outcome, indent=1, ensure_ascii=False))
    elif not options.output:
        _show(outcome)
    print(_summary(outcome), file=sys.stderr)


def _summary(outcome: dict[str, Any]) -> str:
    """One line: how much of the audit holds."""
    planted = [row for row in outcome["planted"] if row["expected"]]
    caught = sum(row["verdict"] == row["expected"] for row in planted)
    alarms, coverage, tails = outcome["alarms"], outcome["coverage"], outcome["tails"]
    return (
        f"audit: {caught} of {len(planted)} planted falsehoods and right theories judged rightly; "
        f"{sum(r['holds'] for r in alarms)} of {len(alarms)} false-alarm rates, "
        f"{sum(r['holds'] for r in coverage)} of {len(coverage)} coverages and "
        f"{sum(r['holds'] for r in tails)} of {len(tails)} tails within bounds"
    )


def _show(outcome: dict[str, Any]) -> None:
    from sims.cli.listing import table

    table(
        ("planted", "in", "effect/margin", "verdict", "replicates", "expected"),
        [
            (
                r["what"],
                r["road"],
                f"{r['effect']:.1f}",
                r["verdict"],
                f"{r['replicates']:,}",
                r["expected"] or "–",
            )
            for r in outcome["planted"]
        ],
    )
    table(
        ("claim", "truth", "wrong verdict", "times", "most allowed"),
        [
            (r["claim"], r["what"], r["wrong"], f"{r['times']} of {r['runs']}", str(r["most"]))
            for r in outcome["alarms"]
        ],
    )
    table(
        ("interval", "of", "covered", "allowed"),
        [
            (r["interval"], r["of"], f"{r['covered']} of {r['runs']}", f"{r['least']}–{r['most']}")
            for r in outcome["coverage"]
        ],
    )
    table(
        ("interval, share 1/100 of 5 %", "of", "missed", "nominal", "most allowed"),
        [
            (r["interval"], r["of"], f"{r['missed']} of {r['runs']:,}", f"{r['nominal']:.0f}",
             str(r["most"]))
            for r in outcome["tails"]
        ],
    )  # fmt: skip
