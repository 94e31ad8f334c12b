"""``make mutants``: mistakes that cosmic-ray makes in core files, and the share caught.

COUNT are drawn of each file, made in a copy of the tree and held against the tests named for it.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

FILES = {
    "sims/theory/first_order/closed_forms.py": "tests/theory/first_order/test_closed_forms.py",
    "sims/theory/first_order/isotropic.py": "tests/experiments/test_rates.py",
    "sims/theory/first_order/laws.py": "tests/theory/first_order/test_laws.py"
    " tests/theory/first_order/test_laws_of_maps.py",
    "sims/theory/exact/laplace.py": "tests/theory/exact/test_exact.py"
    " tests/theory/exact/test_exact_coverage.py",
    "sims/simulation/replicate.py": "tests/simulation/test_engine.py"
    " tests/simulation/test_control.py",
    "sims/simulation/sums.py": "tests/simulation/test_sums.py"
    " tests/simulation/test_engine.py tests/simulation/test_control.py",
    "sims/judgement/intervals.py": "tests/judgement/test_intervals.py",
    "sims/judgement/answers.py": "tests/judgement/test_answers.py",
    "sims/judgement/summaries.py": "tests/judgement/test_answers.py",
    "sims/judgement/tally.py": "tests/judgement/test_answers.py",
    "sims/judgement/effects.py": "tests/judgement/test_answers.py",
    "sims/judgement/table.py": "tests/judgement/test_table.py",
    "sims/judgement/changes.py": "tests/judgement/test_answers.py",
    "sims/judgement/outcomes.py": "tests/judgement/test_answers.py"
    " tests/judgement/test_intervals.py",
    "sims/base/terms.py": "tests/test_terms.py tests/simulation/test_statistics.py",
    "experiments/house/outcomes.py": "tests/experiments/test_house_outcomes.py",
    "experiments/house/pilot.py": "tests/experiments/test_house.py",
    "experiments/house/frames.py": "tests/experiments/test_house.py",
    "experiments/house/simulate.py": "tests/experiments/test_house.py",
    "experiments/merging/tuning.py": "tests/experiments/test_merged_keys.py",
    "experiments/trained_models/lawlike.py": "tests/experiments/test_trained_models.py",
}
OWN_TESTS = {"merging": "merged_keys", "hidden_scores": "effects_by_numpy"}
"""Experiments whose file of tests has another name."""
for path in sorted(Path("experiments").glob("*/statistic.py")):
    name = path.parent.name
    own = f"tests/experiments/test_{OWN_TESTS.get(name, name)}.py"
    FILES[str(path)] = f"{own} tests/experiments/test_battery.py -k {name}"
    if (problems := path.with_name("problems.py")).is_file():
        FILES[str(problems)] = own
FILES["experiments/house/statistic.py"] = (
    "tests/experiments/test_house_outcomes.py tests/experiments/test_battery.py -k house"
)
CONFIG = """[cosmic-ray]
module-path = "{file}"
timeout = 600.0
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""


def main(count: int, seed: str) -> int:
    """Make the mistakes and print a line a file; 1 if tests fail without any mistake."""
    caught = made = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(
            ".", tree, ignore=shutil.ignore_patterns(".venv", ".git", "results", "build", ".*cache")
        )
        shutil.copytree("results/published", tree / "results/published")
        for file, tests in FILES.items():
            (tree / "cr.toml").write_text(
                CONFIG.format(file=file, python=sys.executable, tests=tests)
            )

            def ray(*words: str) -> int:
                command = [Path(sys.executable).with_name("cosmic-ray"), *words]
                surroundings = os.environ | {"PYTHONPATH": str(tree)}
                return subprocess.run(
                    command, cwd=tree, env=surroundings, capture_output=True
                ).returncode

            if ray("baseline", "cr.toml"):
                print(f"{file}: {tests} fail without a mistake")
                return 1
            (tree / "cr.sqlite").unlink(missing_ok=True)
            ray("init", "cr.toml", "cr.sqlite")
            with sqlite3.connect(tree / "cr.sqlite") as session:
                order = "operator_name, occurrence, start_pos_row, start_pos_col"
                jobs = session.execute(
                    f"select job_id from mutation_specs order by {order}"
                ).fetchall()
                left = random.Random(seed + file).sample(jobs, max(len(jobs) - count, 0))
                for table in ("work_items", "mutation_specs"):
                    session.executemany(f"delete from {table} where job_id = ?", left)
            ray("exec", "cr.toml", "cr.sqlite")
            with sqlite3.connect(tree / "cr.sqlite") as session:
                both = "mutation_specs join work_results using (job_id)"
                rows = session.execute(
                    f"select test_outcome, start_pos_row, operator_name from {both}"
                ).fetchall()
            survivors = [
                f"  line {row}: {name}" for outcome, row, name in rows if outcome == "SURVIVED"
            ]
            caught, made = caught + len(rows) - len(survivors), made + len(rows)
            print(
                f"{file}: {len(rows) - len(survivors)} of {len(rows)} caught",
                *survivors,
                sep="\n",
                flush=True,
            )
    print(f"{caught} of {made} mistakes caught, {caught / made:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
