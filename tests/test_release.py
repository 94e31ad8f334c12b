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
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "markdown_it": "markdown-it-py",
    "cycler": "matplotlib",
    "markupsafe": "jinja2",
    "PIL": "pillow",
    "snakemake_interface_logger_plugins": "snakemake",
}
"""Name of a module to that of the distribution that brings it, where the two differ."""
NAMED = {
    "testing.py": "pytest",
    "reader.py": "transformers",
    "cuda.py": "cuda",
    "gguf_file.py": "gguf",
    "capturing.py": "torch",
}
"""File to what it alone may import besides."""


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
    """Of what is imported when a module loads or a function runs, tests and benchmarks aside.

    ``sims.testing`` is of use under pytest alone; others where they are installed.
    """
    required = {re.match(r"[\w-]+", line)[0].lower() for line in PROJECT["dependencies"]}
    for path in (p for room in ("sims", "experiments") for p in (ROOT / room).rglob("*.py")):
        free = {"sims", NAMED.get(path.name)}
        for name in set(imported(path)) - sys.stdlib_module_names - free:
            assert BROUGHT_BY.get(name, name.replace("_", "-")) in required, f"{path}: {name}"
