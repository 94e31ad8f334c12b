"""Copies of this checkout, and packages built of them."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHEEL = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir")


def call(folder, *command, **environment):
    """What a command prints in a folder; it has to succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def copy_checkout(folder):
    """Copy the files under version control as they are now, and put the copies under it."""
    for name in call(ROOT, "git", "ls-files", "-z").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    call(folder, "git", "init", "--quiet")
    call(folder, "git", "add", "--all")


def build_wheel(source, home):
    """Folder of the unpacked wheel of a checkout or sdist."""
    call(source, sys.executable, *WHEEL, home, source)
    (wheel,) = home.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(home / "site")
    return home / "site"
