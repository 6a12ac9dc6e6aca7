"""The repository as these tests see it: its modules, parsed, and the files that are part of the project."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import keymem_daemon

PACKAGES = ("keymem_daemon", "keymem_shim", "keymem_hook")
DAEMON = Path(keymem_daemon.__file__).parent
ROOT = DAEMON.parent


def modules(*packages: str) -> list[Path]:
    """The files of those packages, all three when none is named."""
    return sorted(file for package in packages or PACKAGES for file in (ROOT / package).rglob("*.py"))


def parsed(module: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(module.read_text(encoding="utf-8"))


def named(module: Path) -> str:
    """The path of a module within the repository, for test ids."""
    return module.relative_to(ROOT).as_posix()


def tracked() -> list[str] | None:
    """The paths that belong to the project, ``None`` where this is no checkout."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return None
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else None
