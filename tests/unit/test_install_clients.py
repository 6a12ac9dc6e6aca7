"""`keymemd install` and `uninstall`: what they do to the files of seven clients, and what they leave alone."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keymem_daemon.cli.clients.entry import Commands, passed_variables
from keymem_daemon.cli.clients.table import CLIENTS, Machine
from keymem_daemon.cli.failure import USAGE
from keymem_daemon.cli.main import main

NAMES = tuple(client.name for client in CLIENTS)
COMMANDS = Commands("/opt/k/keymem-shim", "/opt/k/keymem-hook", None)
FILES = {
    "claude-code": (".claude.json", ".claude/settings.json"),
    "codex": (".codex/config.toml",),
    "claude-desktop": (".config/Claude/claude_desktop_config.json",),
    "cursor": (".cursor/mcp.json",),
    "vscode": (".config/Code/User/mcp.json",),
    "gemini": (".gemini/settings.json",),
    "opencode": (".config/opencode/opencode.json",),
}
CODEX_OWNED = """\
# mine
model = "x"  # why

[mcp_servers.other]
command = "o"
args = [
  "a", # first
]

[[hooks.UserPromptSubmit]]
[[hooks.UserPromptSubmit.hooks]]
type = "command"
command = "true"

[projects."/x"]
trust_level = "trusted"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, with nothing in the environment that leads elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    variables = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "KEYMEM_DATA_DIR", "SUPER_MEMORY_DATA_DIR")
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def written(home: Path) -> dict[str, bytes]:
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def without_copies(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if ".bak." not in name}


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def loaded(path: Path) -> dict[str, Any]:
    text = path.read_text()
    found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_installing_writes_the_files_of_the_client_and_doing_it_twice_changes_nothing(home: Path, name: str) -> None:
    assert main(["install", name]) == 0
    once = written(home)
    assert set(once) == set(FILES[name])
    assert main(["install", name]) == 0
    assert written(home) == once
    assert {stat.S_IMODE((home / file).stat().st_mode) for file in once} == {0o600}


@pytest.mark.parametrize("name", NAMES)
def test_uninstalling_takes_out_what_installing_put_in(home: Path, name: str) -> None:
    for file in FILES[name]:
        put(home / file, CODEX_OWNED if file.endswith("toml") else '{\n\t"mine": [1, 2.50]\n}\n')
    before = written(home)
    main(["install", name])
    assert without_copies(written(home)) != before
    assert main(["uninstall", name]) == 0
    assert without_copies(written(home)) == before
    assert main(["uninstall", name]) == 0
    assert without_copies(written(home)) == before


JSON_SHAPES = (
    "",
    " \n\n",
    "{}",
    "{ }",
    "{\n}\n",
    '{"mine": [1, 2.50]}',
    '{\n\t"mine": [1, 2.50],\n\t"more": {"a": {}}\n}\n',
    '{\n    // a remark\n    "mine": 1, /* why */\n}\n// the end',
    '{"mcpServers": {}, "servers": {}, "mcp": {}, "hooks": {}}\n',
    '{"mcpServers": {"o": {"command": "o"}}, "hooks": {"UserPromptSubmit": []}}',
    '{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "o"}]}]},\n\n "z": 1}\n\n',
)
TOML_SHAPES = (
    "",
    "\n\n",
    "# a remark",
    'model = "x"',
    'model = "x"\n\n\n',
    CODEX_OWNED,
    'mcp_servers = { other = { command = "x" } }\nmodel = "y"\n[a]\nb = 1\n',
    "mcp_servers = {}\nhooks = {}",
    'mcp_servers.other.command = "x"\nmcp_servers.other.args = []\nmodel = "y"\n\n[a]\nb = 1\n',
    'hooks.UserPromptSubmit = []\nmodel = "y" # why\n',
    'hooks.Stop = []\n[mcp_servers]\nother.command = "x"\n',
    '[hooks]\nUserPromptSubmit = [ # theirs\n  { hooks = [ { type = "command", command = "o" } ] },\n]\n# the end',
    '[mcp_servers.o]\ncommand = "o"\n[z]\nq = 1\n[mcp_servers.p]\ncommand = "p"',
)


def shaped(name: str) -> st.SearchStrategy[tuple[bytes | None, ...]]:
    """What the files of a client may hold; ``None`` for no file."""
    texts = (st.sampled_from(TOML_SHAPES if file.endswith("toml") else JSON_SHAPES) for file in FILES[name])
    ends = st.sampled_from(["\n", "\r\n"])
    marks = st.sampled_from(["", "\ufeff"])
    files = [
        st.none() | st.builds(lambda mark, text, end: (mark + text.replace("\n", end)).encode(), marks, text, ends)
        for text in texts
    ]
    return st.tuples(*files)


@settings(deadline=None)
@given(
    st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), shaped(name))),
    st.sampled_from(["install", "install again", "move"]),
)
@example(("codex", (("\ufeff" + CODEX_OWNED.replace("\n", "\r\n")).encode(),)), "install")
@example(("claude-code", (None, b"{ }")), "move")
def test_uninstalling_gives_back_the_bytes_that_installing_met(
    client: tuple[str, tuple[bytes | None, ...]], then: str
) -> None:
    name, contents = client
    home = Path(tempfile.mkdtemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.platform", "linux")
        for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "KEYMEM_DATA_DIR"):
            patch.delenv(variable, raising=False)
        patch.setenv("HOME", str(home))
        before = {file: data for file, data in zip(FILES[name], contents, strict=True) if data is not None}
        for file, data in before.items():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_bytes(data)
        assert main(["install", name]) == 0
        between = without_copies(written(home))
        assert set(between) == set(FILES[name])
        for file, data in before.items():
            assert between[file].startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
            if b"\r\n" in data:
                assert between[file].count(b"\n") == between[file].count(b"\r\n")
        if then == "move":
            patch.setenv("KEYMEM_DATA_DIR", str(home / "elsewhere"))
        if then != "install":
            assert main(["install", name]) == 0
        assert main(["uninstall", name]) == 0
        assert without_copies(written(home)) == before
    shutil.rmtree(home)


def test_what_came_in_beside_ours_stays_when_ours_goes(home: Path) -> None:
    main(["install", "codex"])
    path = home / ".codex" / "config.toml"
    path.write_text('model = "x"\n\n' + path.read_text() + "[later]\na = 1\n")
    main(["uninstall", "codex"])
    assert loaded(path) == {"model": "x", "later": {"a": 1}}
    main(["install", "cursor"])
    servers = home / ".cursor" / "mcp.json"
    servers.write_text(json.dumps({**loaded(servers), "mine": 1}))
    main(["uninstall", "cursor"])
    assert loaded(servers) == {"mine": 1}


def test_an_older_copy_that_says_something_else_is_not_put_back(home: Path) -> None:
    path = put(home / ".cursor" / "mcp.json", '{"mine": 1}')
    main(["install", "cursor"])
    path.write_text(path.read_text().replace("1", "2", 1))
    main(["uninstall", "cursor"])
    assert loaded(path) == {"mine": 2}


def test_what_a_link_leads_to_is_emptied_and_not_removed(home: Path) -> None:
    real = put(home / "dotfiles" / "mcp.json", "")
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    main(["install", "cursor"])
    for copy in real.parent.glob("*.bak.*"):
        copy.unlink()
    assert main(["uninstall", "cursor"]) == 0
    assert real.read_bytes() == b""


@pytest.mark.parametrize(
    ("file", "text", "table"),
    [
        (".codex/config.toml", "mcp_servers = 3\n", "mcp_servers"),
        (".codex/config.toml", 'hooks.UserPromptSubmit = "x"\n', "hooks.UserPromptSubmit"),
        (".codex/hooks.json", '{"hooks": {"UserPromptSubmit": {}}}', "hooks.UserPromptSubmit"),
    ],
)
def test_what_leaves_no_room_is_named_and_nothing_changes(
    home: Path, file: str, text: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(home / file, text)
    before = written(home)
    assert main(["install", "codex"]) == 1
    said = capsys.readouterr()
    assert str(home / file) in said.err
    assert f"{table!r} is " in said.err
    assert "--print" in said.err
    assert "keymem-" in said.out
    assert written(home) == before


def test_a_write_that_fails_leaves_no_copy(home: Path) -> None:
    path = put(home / ".cursor" / "mcp.json", "{}")
    (path.parent / f".mcp.json.{os.getpid()}").mkdir()
    assert main(["install", "cursor"]) == 1
    assert written(home) == {".cursor/mcp.json": b"{}"}


def test_no_variable_is_handed_on_twice() -> None:
    variables = passed_variables()
    assert len(variables) == len(set(variables))
    assert {"CLAUDE_CONFIG_DIR", "CODEX_HOME"} <= set(variables)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_what_was_there_is_kept_beside_a_changed_file(home: Path, name: str) -> None:
    file = home / FILES[name][0]
    text = CODEX_OWNED if file.suffix == ".toml" else '{"mine": 1}'
    put(file, text)
    main(["install", name])
    (copy,) = file.parent.glob(f"{file.name}.bak.*")
    assert copy.read_text() == text


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_of_our_name_that_is_not_ours_is_left_alone(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = next(client for client in CLIENTS if client.name == name)
    piece = client.pieces(Machine(home, {}, "linux", lambda _path: None), COMMANDS)[0]
    command: Any = ["npx", "theirs"] if name == "opencode" else "npx"
    put(piece.path, piece.form.snippet(piece.place, {"command": command}))
    before = written(home)
    for verb in ("install", "uninstall"):
        assert main([verb, name]) == 1
        assert "is not this program" in capsys.readouterr().err
    assert written(home) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_cannot_be_read_is_refused_with_what_to_paste(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(home / FILES[name][-1], "this = = {{ is neither")
    before = written(home)
    assert main(["install", name]) == 1
    said = capsys.readouterr()
    assert "keymem" in said.out
    assert "is left as it is" in said.err
    assert written(home) == before


@pytest.mark.parametrize("name", NAMES)
def test_printing_shows_every_piece_and_writes_nothing(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", name, "--print"]) == 0
    shown = capsys.readouterr().out
    assert all(str(home / file) in shown for file in FILES[name])
    assert "keymem-shim" in shown
    assert written(home) == {}


def test_what_a_person_added_to_our_entry_stays(home: Path) -> None:
    main(["install", "claude-code"])
    path = home / ".claude.json"
    entry = loaded(path)
    entry["mcpServers"]["keymem"] |= {"command": "/gone/keymem-shim", "timeout": 9}
    entry["mcpServers"]["keymem"]["env"]["KEYMEM_RERANK"] = "false"
    path.write_text(json.dumps(entry))
    main(["install", "claude-code"])
    server = loaded(path)["mcpServers"]["keymem"]
    assert server["timeout"] == 9
    assert server["env"] == {"KEYMEM_HOOK_INSTALLED": "true", "KEYMEM_RERANK": "false"}
    assert server["command"] != "/gone/keymem-shim"


def test_codex_gets_every_setting_by_name_and_everything_of_the_owner_stays(home: Path) -> None:
    path = put(home / ".codex" / "config.toml", CODEX_OWNED)
    main(["install", "codex"])
    assert set(CODEX_OWNED.splitlines()) <= set(path.read_text().splitlines())
    config = loaded(path)
    server = config["mcp_servers"].pop("keymem")
    assert server["env_vars"] == passed_variables()
    assert "required" not in server
    ours = config["hooks"]["UserPromptSubmit"].pop()
    assert ours["hooks"][0]["command"].endswith("keymem-hook")
    assert config == tomllib.loads(CODEX_OWNED)


def test_hooks_of_others_in_the_same_group_stay_when_ours_goes(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    theirs = {"type": "command", "command": "theirs"}
    put(path, json.dumps({"hooks": {"UserPromptSubmit": [{"matcher": "", "hooks": [theirs]}]}}))
    main(["install", "claude-code"])
    settings = loaded(path)
    groups = settings["hooks"]["UserPromptSubmit"]
    groups[0]["hooks"] += groups.pop()["hooks"]
    path.write_text(json.dumps(settings))
    main(["uninstall", "claude-code"])
    assert loaded(path) == {"hooks": {"UserPromptSubmit": [{"matcher": "", "hooks": [theirs]}]}}


def test_a_linked_file_stays_a_link_and_keeps_its_mode(home: Path) -> None:
    real = put(home / "dotfiles" / "mcp.json", "{}")
    real.chmod(0o640)
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    main(["install", "cursor"])
    assert link.is_symlink()
    assert "keymem" in loaded(real)["mcpServers"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_link_that_leads_nowhere_is_refused(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(home / "gone")
    assert main(["install", "cursor"]) == 1
    assert written(home) == {}


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("claude-code", ".claude/settings.json", '{"enabledPlugins": {"keymem@keymem": true}}'),
        ("codex", ".codex/config.toml", '[plugins."keymem@keymem"]\nenabled = true\n'),
    ],
)
def test_beside_the_plugin_nothing_is_written(
    home: Path, name: str, file: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(home / file, text)
    assert main(["install", name]) == 0
    assert "keymem@keymem" in capsys.readouterr().out
    assert written(home) == {file: text.encode()}
    put(home / file, text.replace("true", "false"))
    main(["install", name])
    assert len(written(home)) > 1


def test_a_data_directory_of_the_environment_is_written_for_server_and_hook(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYMEM_DATA_DIR", str(home / "my data"))
    main(["install", "claude-code"])
    assert loaded(home / ".claude.json")["mcpServers"]["keymem"]["env"]["KEYMEM_DATA_DIR"] == str(home / "my data")
    settings = loaded(home / ".claude" / "settings.json")
    command = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    assert command.startswith(f"KEYMEM_DATA_DIR='{home / 'my data'}' ")
    monkeypatch.delenv("KEYMEM_DATA_DIR")
    before = written(home)
    main(["install", "claude-code"])
    assert written(home) == before
    main(["uninstall", "claude-code"])
    assert without_copies(written(home)) == {}


def test_the_clients_own_variables_move_their_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "c"))
    monkeypatch.setenv("CODEX_HOME", str(home / "x"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "g"))
    for name in ("claude-code", "codex", "vscode", "opencode"):
        main(["install", name])
    expected = {
        "c/.claude.json",
        "c/settings.json",
        "x/config.toml",
        "g/Code/User/mcp.json",
        "g/opencode/opencode.json",
    }
    assert set(written(home)) == expected


def test_the_newer_form_of_opencode_gets_the_entry_where_its_servers_are(home: Path) -> None:
    path = put(home / ".config" / "opencode" / "opencode.jsonc", '{\n  // mine\n  "mcp": {"servers": {}}\n}\n')
    main(["install", "opencode"])
    assert "// mine" in path.read_text()
    assert '"servers": {\n' in path.read_text()
    assert not (path.parent / "opencode.json").exists()


@pytest.mark.parametrize(
    ("platform", "name", "path"),
    [
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("win32", "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("win32", "cursor", ".cursor/mcp.json"),
    ],
)
def test_each_system_has_the_file_in_its_own_place(platform: str, name: str, path: str) -> None:
    home = Path("/home/someone")
    client = next(client for client in CLIENTS if client.name == name)
    pieces = client.pieces(Machine(home, {}, platform, lambda _path: None), COMMANDS)
    assert [piece.path for piece in pieces] == [home / path]


def test_a_client_that_is_not_known_is_named_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "emacs"]) == USAGE
    said = capsys.readouterr().err
    assert all(name in said for name in NAMES)


def test_json_output_says_what_changed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["install", "cursor", "--json"])
    said = json.loads(capsys.readouterr().out)
    path = str(home / ".cursor" / "mcp.json")
    assert said == {
        "client": "cursor",
        "changes": [{"what": "MCP server", "outcome": "added", "path": path}],
        "files": [{"path": path, "copy": None}],
    }
