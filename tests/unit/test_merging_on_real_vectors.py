from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).parents[1] / "eval" / "merge_rule.py"


def test_no_pair_of_the_distinct_list_merges_in_a_sparse_a_full_or_a_growing_store() -> None:
    done = subprocess.run([sys.executable, str(RUNNER)], capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 wrong merges in " in done.stdout
