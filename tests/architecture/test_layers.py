"""Imports go one way, the core is pure, and the environment has few readers."""

from __future__ import annotations

import ast
import subprocess
import sysconfig
from pathlib import Path

import pytest
from tree import DAEMON, ROOT, modules, named, parsed

CORE_MAY_USE = frozenset(
    "__future__ abc bisect collections dataclasses enum functools hashlib heapq itertools math operator re string types "
    "typing unicodedata keymem_daemon".split()
)
READS_A_DATA_FILE = "keymem_daemon/core/lexicon.py"
MUTATORS = frozenset(
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update appendleft".split()
)


def imports(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or ".")
    return found


def test_the_import_contracts_of_the_project_hold() -> None:
    command = Path(sysconfig.get_path("scripts")) / "lint-imports"
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", modules("keymem_daemon/core"), ids=named)
def test_the_core_uses_nothing_that_acts_or_varies(module: Path) -> None:
    used = {name.partition(".")[0] for name in imports(parsed(module))}
    allowed = CORE_MAY_USE | ({"importlib"} if named(module) == READS_A_DATA_FILE else set())
    assert used <= allowed
    assert not [node for node in ast.walk(parsed(module)) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]


@pytest.mark.parametrize("module", modules("keymem_daemon"), ids=named)
def test_in_the_daemon_only_the_settings_read_the_environment(module: Path) -> None:
    reads = {
        node.attr
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    } & {"environ", "environb", "getenv"}
    assert bool(reads) == (module == DAEMON / "settings.py")


@pytest.mark.parametrize("module", modules(), ids=named)
def test_no_function_changes_what_belongs_to_its_module(module: Path) -> None:
    tree = parsed(module)
    owned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    changes = [ast.unparse(node) for node in ast.walk(tree) if _changes(node, owned)]
    assert changes == []


def _changes(node: ast.AST, owned: set[str]) -> bool:
    match node:
        case ast.Global():
            return True
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name in owned
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name in owned and method in MUTATORS
        case _:
            return False


def test_pydantic_is_met_at_the_edge_only() -> None:
    users = {named(module) for module in modules("keymem_daemon") if "pydantic" in imports(parsed(module))}
    assert users
    assert {user.split("/")[1] for user in users} == {"api"}
