"""``python -m sims`` is the ``sims`` command."""

import sys

from sims.cli import main

sys.exit(main())
