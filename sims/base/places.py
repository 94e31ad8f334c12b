"""Locations of experiments, papers and the theory text: the working directory, or the package.

A checkout keeps them at its top level; a wheel carries them inside the package, in ``share``
(``setup.py`` puts them there). No other module searches for them.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
CARRIED = _PACKAGE / "share" if (_PACKAGE / "share").is_dir() else _PACKAGE.parent
"""Folder of the package's data: ``share`` in a wheel, or the top level of a checkout."""
LOCAL_FOLDERS = ("experiments", "papers")
"""Folders that make a working directory replace the package's data.

Without ``papers``, the package's papers are used.
"""


def experiments() -> list[str]:
    """Names of the available experiments; no file is read."""
    return sorted(path.parent.name for path in place("experiments").glob("*/experiment.yaml"))


def place(name: str | Path) -> Path:
    """Path of a file or folder in the working directory, or else in the package.

    Args:
        name: path from the top level of a checkout, such as ``docs/theory.md``.

    Returns:
        The path, relative if it is in the working directory. It may not exist.
    """
    folders = [folder for folder in LOCAL_FOLDERS if Path(folder).is_dir()]
    local = "papers" in folders if name == "papers" else bool(folders)
    return Path(name) if local else CARRIED / name
