"""The commands and code of README, docs and help texts, executed; make docs executes notebooks.

Run by ``pytest -m documented``. Each page is one script, which runs from a wheel in an empty
folder, or in a copy of the checkout if something in it works only there; README in both. A block's
info string says more: ``file=PATH`` is written, and run if it is a test; ``insert=FILE
before="LINE"`` (or ``after``, or ``end``) is written into that file of the package. Code in a line
of text is a command if it has an argument, and no placeholder in capitals.
"""

import os
import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from sims.cli.commands import app
from tests.checkout import ROOT, build_wheel, call, copy_checkout
from tests.inspect.models import LAYOUTS, H, inputs, matrices, write

pytestmark = pytest.mark.documented
NOTEBOOKS = ":!docs/notebooks"
PAGES = call(ROOT, "git", "ls-files", "README.md", "docs/*.md", NOTEBOOKS).split()
COMMANDS = [command.callback.__name__ for command in app.registered_commands[:-1]]
HELP = ["sims --help", *(f"sims {name} --help" for name in COMMANDS)]
BLOCK = re.compile(
    r"^```(?P<kind>[^\s`]+)(?: (?P<info>.+))?\n(?P<text>[\s\S]*?)^```$"
    r"|`(?P<inline>(?:sims|make|snakemake|python|pytest|pip) [^`]+)`",
    re.MULTILINE,
)
SHELLS = ("sh", "bash", "console")
PROSE = ("yaml", "toml", "{toctree}", "{include}", "{eval-rst}", "{raw}")
CHECKOUT = "make|snakemake|pytest|mkdir|sims step"
"""Commands that work in a checkout only."""
PLACEHOLDER = re.compile(r"^sims [\w-]+$|\b[A-Z]{3,}\b(?!=)|[{…]")


class Substitution(NamedTuple):
    """What is executed in place of a text.

    Attributes:
        text: a regular expression.
        run: what is executed in its place.
        reason: why.
        homes: where it is replaced.
    """

    text: str
    run: str
    reason: str
    homes: tuple[str, ...] = ("checkout", "wheel")


SUBSTITUTIONS = (
    Substitution(rf"^({CHECKOUT}) .*", "", "works in a checkout only", ("wheel",)),
    Substitution(r"^make (\S+).*", r"make --dry-run \1", ".ci/run runs the targets"),
    Substitution(r"^(sims decompose house#17)", r"\1 --dry", "a wheel runs it", ("checkout",)),
    Substitution(r"^git clone [\s\S]*", "", "needs a Slurm cluster"),
    Substitution(r"--workflow-profile slurm.*", "--dry-run", "needs a Slurm cluster"),
    Substitution(r"^(uv tool|pip) install.*", "", "this test has pip build the wheel"),
    Substitution(r"^(python -m benchmarks|pytest -m gpu).*", "", "needs an idle machine or a GPU"),
    Substitution(r"^np\.savez.*capture\(model.*", "", "needs torch"),
    Substitution(r"sims run (mine|rates)\b(?! --)", r"sims run \1 --fidelity smoke", "smoke size"),
    Substitution(r"\(LAW, 20\)", "(LAW, 6)", "six problems take a third of the time"),
)


def stem(line):
    """A command without what is said of it."""
    return re.split(r"\s{2,}", line.strip())[0]


TEXTS = [(ROOT / page).read_text("utf-8") for page in PAGES]
IN_BLOCKS = {
    stem(line)
    for text in TEXTS
    for block in BLOCK.finditer(text)
    if block["kind"] in SHELLS
    for line in block["text"].splitlines()
}
"""Commands in blocks of pages, which lines of text and help need not repeat."""


def substituted(text, home):
    for row in SUBSTITUTIONS:
        if home in row.homes:
            text = re.sub(row.text, row.run, text, flags=re.MULTILINE)
    return text


def insert(package, info, text):
    """Write a block into a file of the package, if it is there: a wheel has no tests."""
    path, where = re.fullmatch(r"insert=(\S+) (.+)", info).groups()
    file = package / path
    if not file.exists():
        return
    content = file.read_text("utf-8")
    if where == "end":
        file.write_text(f"{content}\n\n{text}", "utf-8")
        return
    side, line = re.fullmatch(r'(before|after)="(.+)"', where).groups()
    assert content.count(f"\n{line}\n") == 1, f"{path} has not exactly one line {line!r}"
    new = f"{text}{line}" if side == "before" else f"{line}\n{text.rstrip()}"
    file.write_text(content.replace(f"\n{line}\n", f"\n{new}\n"), "utf-8")


def shell(text):
    return f'subprocess.run(["bash", "-ec", {text!r}], check=True)'


def lines_of(block, home, package):
    """Lines of Python that do what a reader does with a block."""
    kind, info, text, inline = block.group("kind", "info", "text", "inline")
    if inline is not None:
        inline = " ".join(inline.split())
        mentioned = PLACEHOLDER.search(inline) or inline in IN_BLOCKS
        return [] if mentioned else [shell(substituted(inline, home))]
    info = info or ""
    text = substituted(text, home)
    if info.startswith("insert="):
        insert(package, info, text)
        return []
    if kind == "{literalinclude}":
        file = Path(info)
        info, text = f"file={file.name}", (ROOT / "docs" / file).read_text("utf-8")
    if info.startswith("file="):
        name = info.removeprefix("file=")
        tests = [shell(f"python -m pytest -q {name}")] if name.startswith("test_") else []
        return [f"Path({name!r}).write_text({text!r})", *tests]
    if kind in SHELLS:
        return [shell(re.sub(r"^\$ ", "", text, flags=re.MULTILINE))]
    if kind == "python":
        return text.splitlines()
    assert kind in PROSE, f"a block of the unknown kind {kind!r}"
    return []


def bring(folder):
    """Files that a reader has: a model and its inputs, a table, a problem and a sweep."""
    for name in ("MODEL", "A", "B", "model", "step1000", "step2000", "."):
        layer = LAYOUTS["bert"](*matrices())
        write(folder / name, layer, {"num_attention_heads": H, "model_type": "bert"})
    for name in "xab":
        np.savez(folder / f"{name}.npz", **{"0": inputs()})
    rows = np.random.default_rng(0).normal(size=(80, 3))
    np.savetxt(folder / "train.csv", rows, delimiter=",", header="u,v,y", comments="")
    problem = (ROOT / "docs/examples/decompose.yaml").read_text("utf-8")
    (folder / "problem.yaml").write_text(problem, "utf-8")
    (folder / "sweep.yaml").write_text(f"{problem}\nsweep: {{grid: {{n: [64, 128]}}}}", "utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    copy_checkout(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    copy_checkout(source)
    return build_wheel(source, tmp_path_factory.mktemp("wheel"))


def test_the_page_of_numpy_alone_judges_ten_problems():
    page = ROOT / "docs/examples/one_page.py"
    lines = page.read_text("utf-8").splitlines()
    assert len(lines) <= 125
    assert [line for line in lines if "import" in line] == ["import numpy as np"]
    problems = call(ROOT, sys.executable, str(page)).splitlines()[1:]
    words = [re.findall(r"% +(falls|rises|\?)", line) for line in problems]
    assert [len(readings) for readings in words] == [3] * 10


def test_the_substitutions_are_few_and_used():
    for row in SUBSTITUTIONS:
        print(f"{row.text} → {row.run or 'nothing'} ({', '.join(row.homes)}: {row.reason})")
        text = re.compile(row.text.removeprefix("^"))
        assert any(map(text.search, TEXTS)), row
    assert len(SUBSTITUTIONS) <= 10


HERE = re.compile(rf"^({CHECKOUT}) |insert=", re.MULTILINE)
"""What works in a checkout only."""
CASES = [(page, "wheel") for page in HELP]
for page, text in zip(PAGES, TEXTS, strict=True):
    CASES.append((page, "checkout" if HERE.search(text) else "wheel"))
CASES.append(("README.md", "wheel"))


@pytest.mark.parametrize(("page", "home"), CASES)
def test_what_a_page_says_can_be_done(page, home, request, tmp_path):
    package = request.getfixturevalue(home)
    folder = tmp_path
    if home == "checkout":
        folder = package
        call(folder, "git", "clean", "-fdq")  # of what another page has made
        call(folder, "git", "checkout", "--quiet", ".")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    surroundings = {"PYTHONPATH": str(package), "PATH": path, "MPLBACKEND": "agg"}
    if page in HELP:
        said = call(ROOT, *page.split(), **surroundings)
        shown = re.findall("^    (sims .+)", said, re.MULTILINE)
        assert shown, "a help text without an example, or indented otherwise"
        examples = [example for example in map(stem, shown) if example not in IN_BLOCKS]
        text = "\n".join(("```sh", *examples, "```", said))
    else:
        text = (ROOT / page).read_text("utf-8")
    script = ["import subprocess", "from pathlib import Path"]
    for block in BLOCK.finditer(text):
        script += lines_of(block, home, package)
    if len(script) == 2:
        return
    bring(folder)
    (tmp_path / "page.py").write_text("\n".join(script), "utf-8")
    begun = time.perf_counter()
    said = call(folder, sys.executable, str(tmp_path / "page.py"), **surroundings)
    print(f"{page} ({home}): {time.perf_counter() - begun:.0f} s")
    for exact, value, error in re.findall(r"([\d.]+) is ([\d.]+) ± ([\d.]+)", said):
        assert 0 < abs(float(exact) - float(value)) < 6 * float(error) < float(value)
