"""``sims audit``: does the judgement find planted falsehoods, and leave true claims alone?"""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from sims.files import write_text

SIZES: dict[str, dict[str, dict[str, int]]] = {
    "smoke": {
        "planted": {"replicates": 64, "batches": 512, "costly": False},
        "calibration": {"runs": 60, "batches": 16, "replicates": 64, "own": False},
    },
    "standard": {
        "planted": {"replicates": 64, "batches": 1024, "costly": True},
        "calibration": {"runs": 500, "batches": 64, "replicates": 16, "own": True},
    },
    "paper": {
        "planted": {"replicates": 64, "batches": 8192, "costly": True},
        "calibration": {"runs": 5000, "batches": 128, "replicates": 16, "own": True},
    },
}


def audit(options: Namespace) -> None:
    """Run both parts, write ``audit.json``, and print what it says."""
    from sims.audit import calibrate, plant

    sizes = SIZES[options.fidelity]
    if options.fidelity == "smoke":
        import jax

        # Compiling is most of the work where so little is run.
        jax.config.update("jax_disable_most_optimizations", True)
    outcome = {
        "sizes": sizes,
        "planted": plant(sizes["planted"]),
        **calibrate(sizes["calibration"]),
    }
    path = Path(options.output or Path("results", options.fidelity, "audit.json"))
    text = json.dumps(outcome, indent=1, ensure_ascii=False)
    write_text(text, path)
    if options.json:
        print(text)
    elif not options.output:
        _show(outcome)
    print(_summary(outcome), file=sys.stderr)


def _summary(outcome: dict[str, Any]) -> str:
    """One line: how much of the audit holds."""
    planted = [row for row in outcome["planted"] if row["expected"]]
    caught = sum(row["verdict"] == row["expected"] for row in planted)
    alarms, coverage = outcome["alarms"], outcome["coverage"]
    return (
        f"audit: {caught} of {len(planted)} planted falsehoods and right theories judged rightly; "
        f"{sum(r['holds'] for r in alarms)} of {len(alarms)} false-alarm rates and "
        f"{sum(r['holds'] for r in coverage)} of {len(coverage)} coverages within bounds"
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
