"""What the shim costs: `python tests/bench/bench_shim.py` prints start to `initialize`, memory, idle CPU and one call.

Times are minimum and median in milliseconds. The measure is `python -c pass` on the same machine in the same minute: start to
`initialize` should stay below four of those, with and without a daemon.
"""

# ruff: noqa: T201
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))

import shim_session
from shim_session import ShimSession

RUNS = 10
IDLE_S = 20.0


def measured(action: Callable[[], float]) -> str:
    times = [action() * 1000 for _ in range(RUNS)]
    return f"{min(times):7.1f} {statistics.median(times):7.1f}"


def bare_python() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def to_initialize(folder: Path, **settings: str) -> float:
    with ShimSession(shim_session.environment(folder / "data", settings), cwd=folder) as session:
        session.initialize()
        return time.monotonic() - session.started


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "away").mkdir()
        print("python -c pass            ", measured(bare_python))
        away = measured(lambda: to_initialize(folder / "away", KEYMEM_DAEMON_AUTOSTART="false"))
        print("initialize without daemon ", away)
        with ShimSession(shim_session.environment(folder / "data"), cwd=folder) as session:
            session.initialize()
            session.call("recall", {"query": "x"})
            print("initialize with daemon    ", measured(lambda: to_initialize(folder)))

            def one_call() -> float:
                started = time.perf_counter()
                session.call("browse_keys", {"namespace": "default"})
                return time.perf_counter() - started

            print("one tool call             ", measured(one_call))
            pid = session.process.pid
            before = cpu_s(pid)
            time.sleep(IDLE_S)
            print(f"idle CPU                   {(cpu_s(pid) - before) / IDLE_S:.3%}")
            print(f"memory                     {rss_mib(pid):.1f} MiB")
        shim_session.end_daemon(folder / "data")


if __name__ == "__main__":
    main()
