"""Which namespaces a working directory stands for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.hosts.namespaces import Namespaces, checked_names
from keymem_daemon.hosts.worktrees import place_of


class Ticks:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def written(data_dir: Path, mapping: object) -> None:
    data_dir.mkdir(exist_ok=True)
    (data_dir / "namespaces.json").write_text(json.dumps(mapping), encoding="utf-8")


def mapped(data_dir: Path, mapping: object) -> Namespaces:
    written(data_dir, mapping)
    return Namespaces(data_dir)


def repository(path: Path) -> Path:
    """A main work tree, as git lays it out."""
    (path / ".git" / "worktrees").mkdir(parents=True)
    return path


def linked(repo: Path, tree: Path, name: str = "wt") -> Path:
    """A linked worktree of ``repo`` at ``tree``, as git lays it out."""
    kept = repo / ".git" / "worktrees" / name
    kept.mkdir(parents=True)
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {kept}\n", encoding="utf-8")
    (kept / "commondir").write_text("../..\n", encoding="utf-8")
    (kept / "gitdir").write_text(f"{tree / '.git'}\n", encoding="utf-8")
    return tree


def test_without_a_mapping_nothing_is_mapped(tmp_path: Path) -> None:
    namespaces = Namespaces(tmp_path)
    assert namespaces.namespaces_for("/anywhere") is None
    assert namespaces.namespaces_for(None) is None
    assert namespaces.problems() == ()


def test_a_mapping_holds_for_the_directory_and_all_below_it_and_nothing_beside_it(tmp_path: Path) -> None:
    namespaces = mapped(tmp_path, {"/a/app": ["app"]})
    answers = {
        path: namespaces.namespaces_for(path) for path in ("/a/app", "/a/app/", "/a/app/x/y", "/a/app2", "/a", "/b/app")
    }
    assert answers == {
        "/a/app": ("app",),
        "/a/app/": ("app",),
        "/a/app/x/y": ("app",),
        "/a/app2": None,
        "/a": None,
        "/b/app": None,
    }


def test_the_longest_mapping_counts(tmp_path: Path) -> None:
    namespaces = mapped(tmp_path, {"/a/app/deep": ["deep"], "/": ["all"], "/a/app": ["app"]})
    assert [namespaces.namespaces_for(path) for path in ("/a/app/deep/x", "/a/app/deeper", "/c")] == [
        ("deep",),
        ("app",),
        ("all",),
    ]


@given(
    st.lists(st.lists(st.sampled_from(["a", "ab", "b", "a b"]), max_size=4).map(tuple), unique=True, max_size=6),
    st.data(),
)
def test_the_mapping_that_counts_is_the_deepest_one_above_by_components(
    tmp_path_factory: pytest.TempPathFactory, roots: list[tuple[str, ...]], data: st.DataObject
) -> None:
    cwd = tuple(data.draw(st.lists(st.sampled_from(["a", "ab", "b", "a b"]), max_size=5)))
    base = ("", "nowhere")
    namespaces = mapped(
        tmp_path_factory.mktemp("data"), {"/".join(base + root): [f"n{number}"] for number, root in enumerate(roots)}
    )
    above = [root for root in roots if cwd[: len(root)] == root]
    expected = None if not above else (f"n{roots.index(max(above, key=len))}",)
    assert namespaces.namespaces_for("/".join(base + cwd)) == expected


def test_both_files_count_and_the_json_file_goes_first(tmp_path: Path) -> None:
    config = '[namespaces]\n"/a" = ["from config"]\n"/b" = "one"\n'
    (tmp_path / "config.toml").write_text(config, encoding="utf-8")
    namespaces = mapped(tmp_path, {"/a": ["from json"]})
    assert (namespaces.namespaces_for("/a"), namespaces.namespaces_for("/b")) == (("from json",), ("one",))
    assert "/a" in namespaces.problems()[0]


def test_a_home_is_understood_and_a_relative_path_is_reported(tmp_path: Path) -> None:
    namespaces = mapped(tmp_path, {"~/keymem-test": ["mine"], "src/app": ["app"], "~nobody-here/x": ["x"]})
    assert namespaces.namespaces_for(str(Path("~/keymem-test/deep").expanduser())) == ("mine",)
    assert len(namespaces.problems()) == 2
    assert len(namespaces.mappings()) == 1


def test_links_on_either_side_lead_to_the_same_place(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    for prefix, cwd in (("link", "real"), ("real", "link"), ("link", "link")):
        namespaces = mapped(tmp_path / f"data-{prefix}-{cwd}", {str(tmp_path / prefix): ["x"]})
        assert namespaces.namespaces_for(str(tmp_path / cwd)) == ("x",)


def test_two_directories_of_one_name_never_share(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "app", tmp_path / "two" / "app"
    one.mkdir(parents=True)
    two.mkdir(parents=True)
    namespaces = mapped(tmp_path, {str(one): ["one"]})
    assert (namespaces.namespaces_for(str(one)), namespaces.namespaces_for(str(two))) == (("one",), None)


def test_a_linked_worktree_shares_with_its_repository_whichever_is_mapped(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = linked(repo, tmp_path / "elsewhere" / "tree")
    (tree / "src").mkdir()
    for number, root in enumerate((repo, tree)):
        namespaces = mapped(tmp_path / f"data-{number}", {str(root): ["app"]})
        paths = (repo, tree, tree / "src", repo / "src")
        assert [namespaces.namespaces_for(str(path)) for path in paths] == [("app",)] * 4
        assert namespaces.namespaces_for(str(tree.parent)) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_worktree_that_git_itself_made_is_resolved(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    quiet = {
        **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
        "PATH": os.defpath,
        "HOME": str(tmp_path),
    }
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (
        ("init", "-q", str(repo)),
        ("-C", str(repo), *who, "commit", "-q", "--allow-empty", "-m", "first"),
        ("-C", str(repo), "worktree", "add", "-q", str(tmp_path / "tree")),
    ):
        subprocess.run(["git", *words], env=quiet, check=True, timeout=30, capture_output=True)
    assert place_of(str(tmp_path / "tree")) == repo
    shutil.copytree(tmp_path / "tree", tmp_path / "copy")
    assert place_of(str(tmp_path / "copy")) == tmp_path / "copy"


def test_a_git_file_that_its_repository_does_not_know_of_is_not_believed(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    linked(repo, tmp_path / "tree")
    planted = tmp_path / "planted"
    planted.mkdir()
    shutil.copy(tmp_path / "tree" / ".git", planted / ".git")
    assert place_of(str(planted)) == planted
    assert place_of(str(tmp_path / "tree")) == repo


@pytest.mark.parametrize("said", [b"", b"gitdir:", b"gitdir: /nowhere", b"\xff\xfe", b"gitdir: a\0b", b"x" * 100_000])
def test_a_git_file_that_says_nothing_of_use_changes_nothing(tmp_path: Path, said: bytes) -> None:
    (tmp_path / ".git").write_bytes(said)
    assert place_of(str(tmp_path / "src")) == tmp_path / "src"


def test_a_submodule_is_a_place_of_its_own(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    module = repo / ".git" / "modules" / "sub"
    module.mkdir(parents=True)
    (repo / "sub").mkdir()
    (repo / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n", encoding="utf-8")
    assert place_of(str(repo / "sub")) == repo / "sub"


@pytest.mark.parametrize("broken", ["{", "[]", "null", '"x"', "[" * 100_000, "\udcff"])
def test_a_broken_file_is_reported_and_what_it_said_stays_in_force(tmp_path: Path, broken: str) -> None:
    namespaces = mapped(tmp_path, {"/a": ["app"]})
    assert namespaces.namespaces_for("/a") == ("app",)
    (tmp_path / "namespaces.json").write_bytes(broken.encode("utf-8", "surrogateescape"))
    assert namespaces.namespaces_for("/a") == ("app",)
    assert "namespaces.json" in namespaces.problems()[0]
    written(tmp_path, {"/a": ["app", "mended"]})
    assert namespaces.namespaces_for("/a") == ("app", "mended")
    assert namespaces.problems() == ()


def test_a_changed_file_counts_at_once_and_a_removed_one_no_longer(tmp_path: Path) -> None:
    namespaces = mapped(tmp_path, {"/a": ["one"]})
    assert namespaces.namespaces_for("/a") == ("one",)
    written(tmp_path, {"/a": ["three", "four"]})
    assert namespaces.namespaces_for("/a") == ("three", "four")
    (tmp_path / "namespaces.json").unlink()
    assert namespaces.namespaces_for("/a") is None


def test_a_link_that_comes_or_moves_later_is_followed_later(tmp_path: Path) -> None:
    ticks = Ticks()
    written(tmp_path, {str(tmp_path / "link"): ["x"]})
    namespaces = Namespaces(tmp_path, ticks)
    (tmp_path / "real").mkdir()
    assert namespaces.namespaces_for(str(tmp_path / "real")) is None
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ticks.at += 10
    assert namespaces.namespaces_for(str(tmp_path / "real")) == ("x",)


def test_names_are_compared_folded_and_a_mistake_never_shows_everything(tmp_path: Path) -> None:
    assert checked_names(["App", "app", "Ｂeta", "e\u0301"]) == (("App", "Ｂeta", "é"), ())
    for wrong in (["*"], [""], [7], None, 7, {"a": 1}, ["x" * 1_000], ["a\x00b"]):
        names, refused = checked_names(wrong)
        assert (names, len(refused)) == ((), 1)
    namespaces = mapped(tmp_path, {"/a": ["*"]})
    assert namespaces.namespaces_for("/a") == ()
    assert "/a" in namespaces.problems()[0]
