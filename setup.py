"""A wheel carries in ``sims/share`` what a checkout keeps at its top level.

All else about the package is in pyproject.toml.
"""

from pathlib import Path
from typing import ClassVar

from setuptools import Command, setup
from setuptools.command.build import build

SHARED = (
    "experiments/*/*.py",
    "experiments/*/*.yaml",
    "experiments/*/*.md",
    "papers/*.yaml",
    "experiments/salt.txt",
    "results/published/answers.json",
    "profiles/*/profile.yaml",
    "Snakefile",
    "*.smk",
)


class BuildShare(Command):
    """A step of ``build`` of its own, by the protocol that setuptools has for such steps."""

    def initialize_options(self) -> None:
        """As setuptools asks; an editable install needs no copies."""
        self.build_lib: str | None = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        """Build where the modules are built."""
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def get_source_files(self) -> list[str]:
        """What is copied; an sdist holds it."""
        return [str(path) for pattern in SHARED for path in sorted(Path().glob(pattern))]

    def get_output_mapping(self) -> dict[str, str]:
        """Copy to source."""
        home = Path(str(self.build_lib), "sims", "share")
        sources = [] if self.editable_mode else self.get_source_files()
        return {str(home / source): source for source in sources}

    def get_outputs(self) -> list[str]:
        """The copies."""
        return list(self.get_output_mapping())

    def run(self) -> None:
        """Copy."""
        for target, source in self.get_output_mapping().items():
            self.mkpath(str(Path(target).parent))
            self.copy_file(source, target)


class Build(build):
    """All steps of a build, with the one above."""

    sub_commands: ClassVar = [*build.sub_commands, ("build_share", None)]


setup(cmdclass={"build": Build, "build_share": BuildShare})
