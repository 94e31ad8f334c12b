"""What a release says of itself in several places is the same in all of them."""

import ast
import os
import re
import sys
import tomllib
from importlib import metadata

import pytest
import yaml

import sims
from sims.study.papers import papers
from tests.checkout import ROOT, call, copy_checkout

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
DIGESTS = """
import sims
from sims.study import code
from sims.study.declaration import Declaration
print(sims.__version__)
for step in ("simulate", "predict", "tabulate", "judge", "plot"):
    print(code.digest(step, Declaration.read("rates")))
print(code.digest("report"))
"""
"""Prints the version, then the digest of each step."""
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
    """Tags give the version; where there are none, it is one before the newest release."""
    newest = re.search(r"^## \[(.+?)\] – (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert (CITATION["version"], CITATION["date-released"]) == newest.groups()
    assert PYPROJECT["tool"]["setuptools_scm"]["fallback_version"] == f"{newest[1]}.dev0"


def test_the_version_is_that_of_the_install_and_enters_no_digest(tmp_path, monkeypatch):
    said = {}
    for version in ("0.2.0", "9.9"):
        information = tmp_path / version / f"nw_attention_sims-{version}.dist-info" / "METADATA"
        information.parent.mkdir(parents=True)
        information.write_text(f"Name: nw-attention-sims\nVersion: {version}\n")
        path = f"{tmp_path / version}{os.pathsep}{ROOT}"
        printed, *digests = call(tmp_path, sys.executable, "-c", DIGESTS, PYTHONPATH=path).split()
        said[printed] = digests
    assert [*said] == ["0.2.0", "9.9"]
    assert said["0.2.0"] == said["9.9"]

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert sims.__version__ == "unknown"


def test_the_citation_names_all_papers():
    cited = {one["identifiers"][0]["value"]: one["title"] for one in CITATION["references"]}
    assert cited == {f"arXiv:{id}": paper.title for id, paper in papers().items()}


def test_a_light_install_has_locked_versions():
    locked, light = (
        set(re.findall("^([a-z].+?)==(.+?) ", (ROOT / "requirements" / name).read_text(), re.M))
        for name in ("lock.txt", "core.txt")
    )
    assert light < locked
    assert "snakemake" not in dict(light)


@pytest.mark.slow
def test_an_archive_has_the_same_bytes_again(tmp_path):
    """Its source, unpacked, has the version of the archive."""
    pytest.importorskip("setuptools_scm")
    copy_checkout(tmp_path)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    call(tmp_path, *git, "commit", "--quiet", "--message=all")
    made = set()
    for _ in range(2):
        call(tmp_path, "make", "-o", "setup", "archive", PYTHONPATH=str(tmp_path))
        (archive,) = (tmp_path / "build/archive").glob("*.tar.gz")
        made.add(archive.read_bytes())
    assert len(made) == 1
    home = archive.with_name(archive.name.removesuffix(".tar.gz"))
    call(home, "sha256sum", "--check", "SHA256SUMS")
    call(home, "tar", "--extract", "--file", "source.tar.gz")
    version = call(home / home.name, sys.executable, "-m", "setuptools_scm").strip()
    assert home.name == f"nw-attention-sims-{version}"


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
