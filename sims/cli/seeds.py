"""``sims seeds``: the whole ledger again with other seeds; does any verdict turn?"""

import json
import shutil
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

from sims.cli.steps import judge, simulate
from sims.errors import InputError
from sims.fingerprint import experiments
from sims.judgement import Verdict, adjust, read_ledger, write_verdicts


def seeds(options: Namespace) -> None:
    """Simulate and judge every experiment with other seeds, and compare with the ledger.

    Predictions are those of the run. What is finished is kept: an interrupted command goes on, and
    a larger count adds seeds.
    """
    folder = Path("results", options.fidelity)
    base = read_ledger(folder / "ledger.json")
    if options.count < 1:
        raise InputError("--count", options.count, "at least 1")
    for offset in range(1, options.count + 1):
        for name in experiments():
            _one(folder, name, offset, options.fidelity)
        print(f"seed {offset} of {options.count}: done", file=sys.stderr, flush=True)
    found = compare(base, [_ledger(folder, k) for k in range(1, options.count + 1)])
    (folder / "seeds.json").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    for row in found["rows"]:
        if row["turned"] or len(row["verdicts"]) > 1:
            counts = ", ".join(f"{n} {kind}" for kind, n in row["verdicts"].items())
            said = (
                f"{row['claim']} ({row['experiment']}, {row['regime']}): {row['first']}; {counts}"
            )
            print(("TURNED  " if row["turned"] else "        ") + said)
    print(
        f"{options.count} seeds, {len(found['rows'])} verdicts each: {found['turned']} turned "
        f"between supported and refuted; {found['inconclusive']} of {found['judged']} inconclusive"
    )


def compare(base: list[Verdict], others: list[list[Verdict]]) -> dict[str, Any]:
    """How verdicts differ between seeds.

    Args:
        base: the ledger.
        others: one ledger a seed, of the same claims.

    Returns:
        ``rows`` (claim, experiment, regime, first, verdicts by kind, turned: whether both
        supported and refuted occur), ``turned`` (how many rows), ``judged``, ``inconclusive``.
    """
    table = [{_key(v): v.verdict for v in ledger} for ledger in others]
    rows = []
    for verdict in base:
        counts = Counter(ledger.get(_key(verdict), "missing") for ledger in table)
        kinds = {verdict.verdict, *counts}
        rows.append(
            {
                "claim": verdict.claim,
                "experiment": verdict.experiment,
                "regime": verdict.regime,
                "first": verdict.verdict,
                "verdicts": dict(counts),
                "turned": {"supported", "refuted"} <= kinds,
            }
        )
    return {
        "rows": rows,
        "turned": sum(bool(row["turned"]) for row in rows),
        "judged": len(others) * len(base),
        "inconclusive": sum(v == "inconclusive" for ledger in table for v in ledger.values()),
    }


def _key(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.experiment, verdict.claim, verdict.regime


def _one(folder: Path, name: str, offset: int, fidelity: str) -> None:
    """One experiment with one other seed: its verdicts, and no data, are kept."""
    home = folder / "seeds" / str(offset) / name
    verdicts = home / "verdicts.json"
    if verdicts.is_file():
        return
    home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / name / "theory.nc", home / "theory.nc")
    asked = {"experiment": name, "fidelity": fidelity}
    simulate(Namespace(**asked, output=str(home / "simulation.nc"), seed_offset=offset))
    judge(Namespace(**asked, output=str(home / "judged.json")))
    (home / "judged.json").replace(verdicts)
    shutil.rmtree(home / ".points", ignore_errors=True)
    for road in ("simulation", "theory"):
        (home / f"{road}.nc").unlink()


def _ledger(folder: Path, offset: int) -> list[Verdict]:
    home = folder / "seeds" / str(offset)
    found = adjust(
        [v for name in experiments() for v in read_ledger(home / name / "verdicts.json")]
    )
    write_verdicts(found, home / "ledger.json")
    return found
