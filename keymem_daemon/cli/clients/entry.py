"""What a client is told: the MCP entry and the hook's command. Made from the settings' table, so that no setting is forgotten.

Codex hands an MCP server only the variables that its entry names, so an entry names every setting. Running this module
(`python -m keymem_daemon.cli.clients.entry`) prints `plugins/keymem/.mcp.json`; a test compares it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Final

from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.settings import OPTIONS
from keymem_shim import rendezvous

__all__ = [
    "HOOK_LIMIT_S",
    "PROMPT_EVENT",
    "SERVER",
    "Commands",
    "found_commands",
    "hook_group",
    "is_our_program",
    "named_commands",
    "our_handlers",
    "passed_variables",
    "plugin_entry",
    "same_or",
    "server_environment",
]

SERVER: Final = "keymem"
PROMPT_EVENT: Final = "UserPromptSubmit"
HOOK_LIMIT_S: Final = 5
HOOK_FLAG: Final = "KEYMEM_HOOK_INSTALLED"
PROGRAMS: Final = frozenset({"keymem-shim", "keymem"})
HOOK_PROGRAM: Final = "keymem-hook"

SURROUNDINGS: Final = (
    "CODEX_THREAD_ID",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
)
"""Variables that are no settings: the session as earlier Codex named it, and what a service manager needs to be asked to start the
daemon."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The programs that a client is to run, and the data directory that the person's environment names, if it does."""

    shim: str
    hook: str
    data_dir: str | None

    def hook_line(self, platform: str) -> str:
        """The hook's command for the client's shell."""
        if platform == "win32":
            return f'"{self.hook}"'
        where = "" if self.data_dir is None else f"KEYMEM_DATA_DIR={shlex.quote(self.data_dir)} "
        return where + shlex.quote(self.hook)


def found_commands() -> Commands:
    """The programs of this installation by their whole path, which also clients that know no PATH can run."""
    named = rendezvous.setting("DATA_DIR")
    data_dir = os.path.abspath(os.path.expanduser(named)) if named else None  # noqa: PTH100, PTH111 - links stay links
    return Commands(_program("keymem-shim"), _program(HOOK_PROGRAM), data_dir)


def named_commands() -> Commands:
    """The programs by name alone, where they need not be run."""
    return Commands("keymem-shim", HOOK_PROGRAM, None)


def _program(name: str) -> str:
    beside = Path(sys.executable).with_name(name + (".exe" if sys.platform == "win32" else ""))
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise CommandFailed(
            f"{name} is not installed beside {sys.executable}", "Install keymem with pip, then try again."
        )
    return found


def passed_variables() -> list[str]:
    """Every variable that Codex must hand on, in the order of the settings' table."""
    return [variable for option in OPTIONS for variable in option.variables] + list(SURROUNDINGS)


def server_environment(data_dir: str | None, *, with_hook: bool) -> dict[str, str]:
    """The variables that an entry sets."""
    environment = {HOOK_FLAG: "true"} if with_hook else {}
    return environment if data_dir is None else {**environment, "KEYMEM_DATA_DIR": data_dir}


def hook_group(command: str) -> dict[str, Any]:
    """One group of handlers for the event of a prompt, in the form that Claude Code and Codex share."""
    return {"hooks": [{"type": "command", "command": command, "timeout": HOOK_LIMIT_S}]}


def is_our_program(command: object) -> bool:
    """Whether a command, given as text or as a list, is the shim."""
    if isinstance(command, list):
        command = command[0] if command else ""
    return isinstance(command, str) and _stem(command) in PROGRAMS


def our_handlers(groups: object) -> list[tuple[int, str, int]]:
    """The places, in a list of groups, of the handlers that run the hook."""
    return [
        (at, "hooks", number)
        for at, group in enumerate(groups if isinstance(groups, list) else [])
        if isinstance(group, Mapping) and isinstance(group.get("hooks"), list)
        for number, handler in enumerate(group["hooks"])
        if _is_our_hook(handler)
    ]


def same_or(present: object, wanted: str) -> str:
    """The line of a hook that is there, when it runs the wanted program and sets more variables for it; else the wanted one."""
    return present if isinstance(present, str) and present.endswith(f" {wanted}") else wanted


def _is_our_hook(handler: object) -> bool:
    """Whether a handler runs the hook."""
    command = handler.get("command") if isinstance(handler, Mapping) else None
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command, posix="\\" not in command)
    except ValueError:
        return False
    return bool(words) and _stem(words[-1].strip('"')) == HOOK_PROGRAM


def _stem(command: str) -> str:
    # Windows paths are split at both kinds of slash.
    return PureWindowsPath(command).name.lower().removesuffix(".exe")


def plugin_entry() -> str:
    """The plugin's `.mcp.json`, which both clients read; each ignores what only the other knows."""
    environment = server_environment(None, with_hook=True)
    entry = {"command": "keymem-shim", "args": [], "env": environment, "env_vars": passed_variables()}
    return json.dumps({"mcpServers": {SERVER: entry}}, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(plugin_entry())
