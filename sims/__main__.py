"""``python -m sims`` is the ``sims`` command."""

import sys
from pathlib import Path

if not sys.flags.safe_path and sys.path[0] != str(Path(__file__).parents[1]):
    del sys.path[0]  # this folder, where a file could replace a module

from sims.cli import main

sys.exit(main())
