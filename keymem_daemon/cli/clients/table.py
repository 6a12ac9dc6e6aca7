"""The clients, one row each: where it keeps what, and the form in which it wants an MCP server and, where it has one, a prompt hook.

The paths are those of each client's documentation; Claude Code and Codex were run (`docs/clients.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keymem_daemon.cli.clients.entry import (
    PROMPT_EVENT,
    SERVER,
    Commands,
    hook_group,
    our_handlers,
    passed_variables,
    server_environment,
)
from keymem_daemon.cli.clients.formats import Format, Json, Refused, Toml, found
from keymem_daemon.cli.clients.json_text import Step

__all__ = ["CLIENTS", "Client", "Entry", "Hook", "Machine", "Plugin"]


@dataclass(frozen=True, slots=True)
class Machine:
    """Whose clients are meant: the home, the environment and the platform as `sys.platform` names it; ``read`` gives a file's text."""

    home: Path
    environment: Mapping[str, str]
    platform: str
    read: Callable[[Path], str | None]

    def named(self, variable: str, otherwise: Path) -> Path:
        """The directory that an environment variable names."""
        value = self.environment.get(variable)
        return Path(value).expanduser() if value else otherwise

    @property
    def applications(self) -> Path:
        """Where programs with windows keep their settings."""
        match self.platform:
            case "darwin":
                return self.home / "Library" / "Application Support"
            case "win32":
                return self.named("APPDATA", self.home / "AppData" / "Roaming")
            case _:
                return self.configuration

    @property
    def configuration(self) -> Path:
        """The configuration directory of programs that follow the XDG rules."""
        return self.named("XDG_CONFIG_HOME", self.home / ".config")

    def meaning(self, path: Path, form: Format) -> dict[str, Any]:
        """What a file says; nothing where it is not there or cannot be understood."""
        try:
            return form.meaning(self.read(path) or "")
        except Refused:
            return {}


@dataclass(frozen=True, slots=True)
class Entry:
    """An MCP server that is to stand under ``place`` in a file."""

    path: Path
    form: Format
    place: tuple[Step, ...]
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hook:
    """A group of handlers that is to stand in the list under ``place`` in a file."""

    path: Path
    form: Format
    place: tuple[Step, ...]
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plugin:
    """Where a file says that the plugin is installed; it brings the server and the hook itself."""

    path: Path
    form: Format
    place: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Client:
    """One client. ``then`` is what a person does next."""

    name: str
    title: str
    pieces: Callable[[Machine, Commands], tuple[Entry | Hook, ...]]
    then: str
    plugin: Callable[[Machine], Plugin] | None = None


def _stdio(commands: Commands, *, with_hook: bool = False) -> dict[str, Any]:
    return {
        "command": commands.shim,
        "args": [],
        "env": server_environment(commands.data_dir, with_hook=with_hook),
    }


def _servers_file(path: Callable[[Machine], Path]) -> Callable[[Machine, Commands], tuple[Entry | Hook, ...]]:
    """The pieces of a client whose file has ``mcpServers`` and who has no hook for a prompt."""

    def pieces(machine: Machine, commands: Commands) -> tuple[Entry | Hook, ...]:
        return (Entry(path(machine), Json(), ("mcpServers", SERVER), _stdio(commands)),)

    return pieces


def _claude_settings(machine: Machine) -> Path:
    return machine.named("CLAUDE_CONFIG_DIR", machine.home / ".claude") / "settings.json"


def _claude_code(machine: Machine, commands: Commands) -> tuple[Entry | Hook, ...]:
    servers = machine.named("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"
    value = {"type": "stdio", **_stdio(commands, with_hook=True)}
    group = hook_group(commands.hook_line(machine.platform))
    return (
        Entry(servers, Json(), ("mcpServers", SERVER), value),
        Hook(_claude_settings(machine), Json(), ("hooks", PROMPT_EVENT), group),
    )


def _codex_home(machine: Machine) -> Path:
    return machine.named("CODEX_HOME", machine.home / ".codex")


def _codex(machine: Machine, commands: Commands) -> tuple[Entry | Hook, ...]:
    settings, hooks = _codex_home(machine) / "config.toml", _codex_home(machine) / "hooks.json"
    value = {**_stdio(commands, with_hook=True), "env_vars": passed_variables()}
    group = hook_group(commands.hook_line(machine.platform))
    # Codex warns at every start of a home that has hooks in both files; a hook of ours that is there stays where it is.
    has_ours = bool(our_handlers(found(machine.meaning(settings, Toml()), ("hooks", PROMPT_EVENT))))
    in_json = not has_ours and found(machine.meaning(hooks, Json()), ("hooks",)) is not None
    return (
        Entry(settings, Toml(), ("mcp_servers", SERVER), value),
        Hook(hooks if in_json else settings, Json() if in_json else Toml(), ("hooks", PROMPT_EVENT), group),
    )


def _vscode(machine: Machine, commands: Commands) -> tuple[Entry | Hook, ...]:
    path = machine.applications / "Code" / "User" / "mcp.json"
    return (Entry(path, Json(), ("servers", SERVER), {"type": "stdio", **_stdio(commands)}),)


def _opencode(machine: Machine, commands: Commands) -> tuple[Entry | Hook, ...]:
    directory = machine.configuration / "opencode"
    path = directory / "opencode.jsonc"
    if machine.read(path) is None:
        path = directory / "opencode.json"
    value: dict[str, Any] = {
        "type": "local",
        "command": [commands.shim],
        "environment": server_environment(commands.data_dir, with_hook=False),
    }
    servers = found(machine.meaning(path, Json()), ("mcp", "servers"))
    # The second version of the file has one more level, and says what is off, not what is on.
    if isinstance(servers, dict) and "type" not in servers:
        return (Entry(path, Json(), ("mcp", "servers", SERVER), value),)
    return (Entry(path, Json(), ("mcp", SERVER), {**value, "enabled": True}),)


_RESTART: Final = "Start it anew to bring the tools in."

CLIENTS: Final[tuple[Client, ...]] = (
    Client(
        "claude-code",
        "Claude Code",
        _claude_code,
        "Start a new session; `claude mcp list` shows the connection.",
        lambda machine: Plugin(_claude_settings(machine), Json(), ("enabledPlugins",)),
    ),
    Client(
        "codex",
        "Codex",
        _codex,
        "Codex runs a hook only once it is trusted: start codex, type /hooks and trust keymem-hook.",
        lambda machine: Plugin(_codex_home(machine) / "config.toml", Toml(), ("plugins",)),
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        _servers_file(lambda machine: machine.applications / "Claude" / "claude_desktop_config.json"),
        _RESTART,
    ),
    Client("cursor", "Cursor", _servers_file(lambda machine: machine.home / ".cursor" / "mcp.json"), _RESTART),
    Client("vscode", "VS Code", _vscode, "Run `MCP: List Servers` in VS Code to start it."),
    Client("gemini", "Gemini CLI", _servers_file(lambda machine: machine.home / ".gemini" / "settings.json"), _RESTART),
    Client("opencode", "opencode", _opencode, _RESTART),
)
