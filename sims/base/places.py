"""Places of experiments, papers and the text of the theory: this folder, or the package.

A checkout keeps them at its top level; a wheel carries them inside the package, in ``share``
(``setup.py`` puts them there). Nothing else looks for them.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
CARRIED = _PACKAGE / "share" if (_PACKAGE / "share").is_dir() else _PACKAGE.parent
"""The folder of what came with the package: its own ``share``, or the top level of a checkout."""
LOCAL_FOLDERS = ("experiments", "papers")
"""A working directory with one of these folders stands for itself.

Of a directory without papers questions are asked of those that came with the package.
"""


def experiments() -> list[str]:
    """Names of the experiments that are here; no file is read."""
    return sorted(path.parent.name for path in place("experiments").glob("*/experiment.yaml"))


def place(name: str | Path) -> Path:
    """The file or folder of that name, of this folder or else of what came with the package.

    Args:
        name: as a checkout has it from its top level: ``experiments``, ``docs/theory.md``.

    Returns:
        The path, relative where it is of the working directory. Nothing may be there.
    """
    folders = [folder for folder in LOCAL_FOLDERS if Path(folder).is_dir()]
    local = "papers" in folders if name == "papers" else bool(folders)
    return Path(name) if local else CARRIED / name
