"""`keymemd` as a person runs it: a process, with pipes or on a terminal. Every wait is bounded."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from running_daemon import clean_environment

WAIT_S = 60.0
COMMAND = (sys.executable, "-m", "keymem_daemon")


def keymemd(
    directory: Path, *words: str, extra: Mapping[str, str] | None = None, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command with pipes to its end."""
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env=clean_environment(directory, extra),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=WAIT_S,
        check=False,
    )


def succeeds(
    directory: Path, *words: str, extra: Mapping[str, str] | None = None, stdin: str = "", cwd: Path | None = None
) -> str:
    """What a command prints that ends with 0 and complains of nothing."""
    done = keymemd(directory, *words, extra=extra, stdin=stdin, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def fails(directory: Path, *words: str, code: int = 1, extra: Mapping[str, str] | None = None) -> str:
    """The one line on stderr of a command that ends with ``code`` and prints nothing else."""
    done = keymemd(directory, *words, extra=extra)
    assert done.returncode == code, done
    assert done.stdout == ""
    assert done.stderr.startswith("keymemd: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def json_of(directory: Path, *words: str, cwd: Path | None = None) -> dict[str, Any]:
    """The object that a command prints with ``--json``."""
    found = json.loads(succeeds(directory, *words, "--json", cwd=cwd))
    assert isinstance(found, dict)
    return found


def on_terminal(
    directory: Path,
    words: Sequence[str],
    answer: str = "",
    width: int = 80,
    extra: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run one command on a terminal of ``width`` columns and type ``answer``; its exit code and all that is shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = clean_environment(directory, {"TERM": "xterm", **(extra or {})})
    if not extra or "NO_COLOR" not in extra:
        environment.pop("NO_COLOR", None)
    process = subprocess.Popen([*COMMAND, *words], env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        os.write(ours, answer.encode())
        shown = _read_to_end(ours)
        return process.wait(WAIT_S), shown.replace("\r\n", "\n")
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait(WAIT_S)


def _read_to_end(descriptor: int) -> str:
    parts: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            part = os.read(descriptor, 65_536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode(errors="replace")
