"""`python -m keymem_daemon` is `keymemd`."""

from __future__ import annotations

import sys

from keymem_daemon.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
