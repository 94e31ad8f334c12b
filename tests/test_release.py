"""What a release says of itself in several places is the same in all of them."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import yaml

import sims

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BROUGHT_BY = {
    "yaml": "pyyaml", "sklearn": "scikit-learn", "markdown_it": "markdown-it-py",
    "cycler": "matplotlib", "markupsafe": "jinja2", "PIL": "pillow",
    "snakemake_interface_logger_plugins": "snakemake",
}  # fmt: skip
"""Name of a module to that of the distribution that brings it, where the two differ."""


def test_one_version_and_one_date():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    newest = re.search(r"^## \[(.+?)\] – (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert PROJECT["version"] == sims.__version__ == citation["version"] == newest[1]
    assert citation["date-released"] == newest[2]


def imported(path):
    """Top names of what a file imports, wherever in it, from elsewhere."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_everything_that_the_package_imports_is_required():
    """Of what is imported when a module loads or a function runs, tests and benchmarks aside."""
    required = {re.match(r"[\w-]+", line)[0].lower() for line in PROJECT["dependencies"]}
    for path in (p for room in ("sims", "experiments") for p in (ROOT / room).rglob("*.py")):
        for name in set(imported(path)) - sys.stdlib_module_names - {"sims"}:
            assert BROUGHT_BY.get(name, name.replace("_", "-")) in required, f"{path}: {name}"


def test_files_for_code_hosts_and_docker_name_what_is_there():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    steps = workflow["jobs"]["run"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        assert isinstance(yaml.safe_load(path.read_text("utf-8")), dict), path
    recipes = [(ROOT / name).read_text("utf-8") for name in ("Dockerfile", "apptainer.def")]
    for name in re.findall(r"requirements/\w+\.txt", "".join(recipes)):
        assert (ROOT / name).is_file(), name
    copied = re.findall(r"^    (\S+) /source/\1$", recipes[1], re.MULTILINE)
    assert all((ROOT / name).exists() for name in copied)
    setup = ast.parse((ROOT / "setup.py").read_text("utf-8")).body
    shared = next(ast.literal_eval(n.value) for n in setup if isinstance(n, ast.Assign))
    assert {pattern.split("/")[0] for pattern in shared} <= {name.split("/")[0] for name in copied}
