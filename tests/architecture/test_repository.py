"""The repository itself: what it holds, what it does not mention, and what goes into the package."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from tree import PACKAGES, ROOT, modules, named, parsed, tracked

TOP = frozenset(
    ".agents .ci .claude-plugin .gitignore CHANGELOG.md LICENSE README.md docs keymem_daemon keymem_hook keymem_shim "
    "launchd plugins pyproject.toml systemd tests".split()
)
OUT_OF_PLACE = re.compile(
    "|".join(
        [
            r"(?<![~\w.])/wor" + "k/",
            "/tm" + "p/w/",
            "/roo" + "t/",
            "pypi" + r"\.org",
            "python" + r"hosted\.org",
            "artifact" + "ory",
            "--index" + "-url",
            "--extra-index" + "-url",
        ]
    )
)
NOT_TEXT = frozenset({".gz", ".npz", ".npy", ".png", ".db", ".bin"})


def files() -> list[str]:
    found = tracked()
    if found is None:
        pytest.skip("not a checkout")
    return found


def test_the_top_level_is_the_fixed_one() -> None:
    assert {PurePosixPath(path).parts[0] for path in files()} <= TOP


def test_every_file_speaks_of_the_project_only() -> None:
    wrong = [
        f"{path}: {found[0]}"
        for path in files()
        if (ROOT / path).is_file() and PurePosixPath(path).suffix not in NOT_TEXT
        for found in [OUT_OF_PLACE.search((ROOT / path).read_text(encoding="utf-8", errors="replace"))]
        if found
    ]
    assert wrong == []


@pytest.mark.parametrize("module", modules(), ids=named)
def test_every_module_opens_with_its_rule(module: Path) -> None:
    said = ast.get_docstring(parsed(module))
    assert said, "no docstring"
    assert len(said) > 20


@pytest.mark.parametrize("module", modules(), ids=named)
def test_names_come_from_the_domain(module: Path) -> None:
    assert not {"utils", "util", "helpers", "helper", "common", "manager", "misc"} & set(module.stem.split("_"))


def test_every_file_that_is_not_code_is_declared_as_package_data() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["tool"]["setuptools"]["package-data"]
    missing = [
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and file.suffix not in {".py", ".pyc"}
        if not any(file.relative_to(ROOT / package).match(pattern) for pattern in declared[package])
    ]
    assert missing == []


def test_every_declared_pattern_but_the_pages_finds_a_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for package, patterns in project["tool"]["setuptools"]["package-data"].items():
        for pattern in patterns:
            assert list((ROOT / package).glob(pattern)) or "page" in pattern, f"{package}: {pattern}"


def test_every_command_leads_to_a_function() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(project["project"]["scripts"]) == {"keymemd", "keymem-shim", "keymem", "keymem-hook"}
    for target in project["project"]["scripts"].values():
        module, _, function = target.partition(":")
        file = ROOT.joinpath(*module.split("."))
        source = file.with_suffix(".py") if file.with_suffix(".py").is_file() else file / "__init__.py"
        assert function in {node.name for node in parsed(source).body if isinstance(node, ast.FunctionDef)}


def test_the_architecture_page_has_a_heading_for_every_folder_of_code() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {
        module.parent.relative_to(ROOT).as_posix() for module in modules() if module.parent.name != "__pycache__"
    }
    headings = {line.strip("# `/") for line in page.splitlines() if line.startswith("#")}
    assert {folder for folder in folders if folder not in headings} == set()


def test_the_architecture_page_names_only_tests_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named_files = set(re.findall(r"`(tests/[\w/]+\.py)`", page))
    assert named_files
    assert {path for path in named_files if not (ROOT / path).is_file()} == set()


def test_every_command_that_a_text_names_exists() -> None:
    from keymem_daemon.cli.main import COMMANDS  # noqa: PLC0415 - the other tests here read files only

    named_command = re.compile(r"`(?:\.venv/bin/)?keymemd ([a-z][a-z-]*)")
    texts = [path for path in files() if path.endswith((".py", ".md")) and not path.startswith("tests/")]
    unknown = {
        (path, command)
        for path in texts
        for command in named_command.findall((ROOT / path).read_text(encoding="utf-8"))
        if command not in COMMANDS
    }
    assert not unknown
