"""``python -m sims.simulation.native``: compile the C++ kernel sums for this host."""

import subprocess

from sims.base.errors import InputError
from sims.simulation.native import build, library

try:
    build(library())
    print(f"native kernel sums: {library()}")
except (OSError, subprocess.CalledProcessError, InputError) as error:
    print(f"native kernel sums: no C++ compiler that works ({error}); the engine uses XLA instead")
