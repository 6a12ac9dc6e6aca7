"""The clients start once a session and once a prompt: what they import is a budget, and the environment has few readers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import keymem_hook
import keymem_shim

SHIM = Path(keymem_shim.__file__).parent
HOOK = Path(keymem_hook.__file__).parent
MODULES = sorted([*SHIM.glob("*.py"), *HOOK.glob("*.py")])

ALLOWED = frozenset(
    "binascii collections contextlib errno fcntl hashlib json os select signal socket stat subprocess sys threading time".split()
)
EXPENSIVE = ("http", "urllib", "asyncio", "argparse", "dataclasses", "typing", "pathlib", "logging", "inspect", "uuid")
ENVIRONMENT_READERS = ("rendezvous.py", "identity.py")


def _imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _outside_type_checking(tree: ast.Module) -> ast.Module:
    body = [node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    return ast.Module(body, [])


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_client_module_imports_only_the_cheap_standard_library(module: Path) -> None:
    imported = _imported(_outside_type_checking(ast.parse(module.read_text())))
    assert imported - ALLOWED - {"__future__", "keymem_shim", "keymem_hook"} == set()


@pytest.mark.parametrize("name", ["keymem_shim.main", "keymem_shim.rendezvous", "keymem_shim.http1", "keymem_hook"])
def test_importing_a_client_loads_no_expensive_module(name: str) -> None:
    program = f"import sys; before = set(sys.modules); import {name}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(SHIM.parent)!r}); " + program],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    loaded = {module.partition(".")[0] for module in done.stdout.split()}
    assert loaded & {*EXPENSIVE, "keymem_daemon", "subprocess"} == set()


def test_the_hook_shares_only_discovery_identity_and_http_with_the_shim() -> None:
    used = {
        alias.name
        for node in ast.walk(ast.parse((HOOK / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "keymem_shim"
        for alias in node.names
    }
    assert used == {"http1", "identity", "rendezvous"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_environment_is_read_in_two_client_modules_only(module: Path) -> None:
    reads = "os.environ" in module.read_text() or "getenv" in module.read_text()
    assert reads == (module.name in ENVIRONMENT_READERS)
