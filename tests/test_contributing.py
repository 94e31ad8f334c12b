"""What CONTRIBUTING.md and docs/extending.md count and name; test_documented.py executes it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
RULES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_table_counts_the_lines_of_the_blocks():
    def lines(start):
        texts = [text for _, info, text in BLOCKS if info.startswith(start)]
        return sum(bool(line.strip()) for text in texts for line in text.splitlines())

    counts = {
        "target": lines("insert=sims/problem/targets.py"),
        "kernel": lines("insert=sims/problem/kernels.py"),
    }
    for name, count in counts.items():
        assert f"| {name} | {count} |" in TEXT
    for name, scaffold in (("experiment", "gap"), ("statistic", "statistic")):
        files = (ROOT / "sims/study/scaffold" / scaffold).glob("*.txt")
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        counts[name] = sum(bool(line.strip()) for line in text.splitlines())
    for name, count in counts.items():
        assert f"| {name} | {count} |" in RULES


def test_what_both_pages_name_exists():
    """Targets of make, and files and folders, in blocks, code and links."""
    makefile, both = (ROOT / "Makefile").read_text(encoding="utf-8"), RULES + TEXT
    for target in set(re.findall(r"(?:^|`)make ([\w-]+)", both, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    paths = re.findall(r"`((?:sims|tests|docs|experiments|papers)/[\w/.]+)`", both)
    for path in [*paths, *re.findall(r"\]\(([^)#]+)\)", RULES)]:
        assert (ROOT / path).exists(), path
    assert "docs/extending.md" in RULES
