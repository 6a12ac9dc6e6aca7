"""The kill tests use the same client of the shim as the end-to-end tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))
