"""What `keymemd status` shows: facts from every part, and the problems with the command that mends each."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from keymem_shim import rendezvous

__all__ = ["hook_summary", "problem", "resident_bytes"]

_HOOK_TAIL_BYTES: Final = 32_768
_HOOK_LINES: Final = 200


def problem(what: str, mend: str) -> dict[str, str]:
    """One problem, and the command or step that mends it."""
    return {"problem": what, "mend": mend}


def resident_bytes() -> int:
    """Memory in use by this process, in bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def hook_summary(data_dir: Path) -> dict[str, Any]:
    """How the hook's last runs went, from the end of its log: one JSON object a line, `outcome` and `ms`."""
    lines = _last_lines(Path(rendezvous.log_dir(str(data_dir))) / "hook.log")
    runs = [run for run in map(_run_of, lines) if run is not None]
    outcomes: dict[str, int] = {}
    for run in runs:
        name = str(run["outcome"])
        outcomes[name] = outcomes.get(name, 0) + 1
    times = sorted(float(run["ms"]) for run in runs if isinstance(run.get("ms"), int | float))
    return {
        "runs": len(runs),
        "outcomes": outcomes,
        "p50_ms": _percentile(times, 0.50),
        "p95_ms": _percentile(times, 0.95),
    }


def _last_lines(path: Path) -> Sequence[str]:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _HOOK_TAIL_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()[-_HOOK_LINES:]
    except OSError:
        return ()


def _run_of(line: str) -> Mapping[str, Any] | None:
    try:
        run = json.loads(line)
    except ValueError:
        return None
    return run if isinstance(run, dict) and "outcome" in run else None


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else None
