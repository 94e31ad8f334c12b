"""A wheel carries in ``sims/share`` what a checkout keeps at its top level.

A checkout ships the files under version control only. All else about the package is in
pyproject.toml.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

SHARED = (
    "experiments/*/*.py",
    "experiments/*/*.yaml",
    "experiments/*/*.md",
    "experiments/*/*.txt",
    "experiments/*/*.xz",
    "papers/*.yaml",
    "results/published/answers.json",
    "results/published/trained_models/panels.nc",
    "profiles/*/profile.yaml",
    "Snakefile",
    "*.smk",
)


@cache
def tracked() -> frozenset[Path] | None:
    """Files under version control; None if this file is not, as in an unpacked sdist."""
    # A checkout may belong to another user, as in a container.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listed = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    except FileNotFoundError:
        print("setup.py: git not found: untracked files are shipped too", file=sys.stderr)
        return None
    files = frozenset(map(Path, listed.split("\0")))
    return files if Path("setup.py") in files else None


def is_shipped(file: str) -> bool:
    """True if a file is under version control, or nothing is."""
    files = tracked()
    path = Path(file)
    return files is None or (path.relative_to(Path.cwd()) if path.is_absolute() else path) in files


def shared() -> list[str]:
    """What a checkout keeps at its top level."""
    paths = [str(path) for pattern in SHARED for path in sorted(Path().glob(pattern))]
    return [*filter(is_shipped, paths)]


class BuildModules(build_py):
    """The build of modules and their data, without untracked ones."""

    def run(self) -> None:
        """Build from nothing: what an earlier build left would be shipped."""
        if self.editable_mode:  # such an install needs no copies
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for source in shared():
            target = Path(self.build_lib, "sims", "share", source)
            self.mkpath(str(target.parent))
            self.copy_file(source, str(target))

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Package, name and file of modules."""
        found = super().find_package_modules(package, package_dir)
        return [module for module in found if is_shipped(module[2])]

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        """Files of a package that are no modules."""
        return [*filter(is_shipped, super().find_data_files(package, src_dir))]


class Sdist(sdist):
    """An sdist without untracked files, which the manifest of an earlier build may name."""

    def make_release_tree(self, base_dir: str, files: Iterable[str]) -> None:
        """Copy the files, and what setuptools wrote about them."""
        made = f"{self.distribution.get_fullname().split('-')[0]}.egg-info"
        shipped = [name for name in files if is_shipped(name) or Path(name).parts[0] == made]
        super().make_release_tree(base_dir, [*shipped, *shared()])


setup(cmdclass={"build_py": BuildModules, "sdist": Sdist})
