"""`python -m pcbatch` is the command `pcbatch`."""

from __future__ import annotations

import sys

from pcbatch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
