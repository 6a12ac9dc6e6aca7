"""The real Claude Code and Codex, each run in a home of its own, with nothing of the tester's environment and no vendor's server."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from model_api import ModelApi

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PLUGIN: Final = "keymem@keymem"
CLAUDE_TOOL: Final = "mcp__plugin_keymem_keymem__"
WAIT_S: Final = 110.0

CODEX_DIRECT: Final = "gpt-5-unlisted"
CODEX_SEARCH: Final = "gpt-5.5"
CODEX_SCRIPT: Final = "gpt-6.2-sol"
CODEX_MODELS: Final = (CODEX_DIRECT, CODEX_SEARCH, CODEX_SCRIPT)
"""Model names for which Codex shows tools directly, behind a search, and in a script."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict), self
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON lines of stdout."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


@dataclass(frozen=True, slots=True)
class Place:
    """Directories of one client: its home, a project, and the data directory, which several may share."""

    root: Path
    data: Path
    commands: Path = field(default=Path(sys.executable).parent)
    """Where `keymem-shim` and `keymem-hook` are; another directory takes them off PATH."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def with_variables(self, **more: str) -> Place:
        """The same place with more in its environment."""
        return replace(self, variables={**self.variables, **more})

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Everything a command sees."""
        temporary = self.home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(exist_ok=True)
        return {
            "PATH": f"{self.commands}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(self.home),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "TMPDIR": str(temporary),
            "CLAUDE_CODE_TMPDIR": str(temporary),
            "KEYMEM_DATA_DIR": str(self.data),
            **self.variables,
            **extra,
        }

    def run(self, command: Sequence[str | Path], **extra: str) -> Ended:
        """Run a command in the project to its end."""
        environment = self.environment(extra)
        done = subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=WAIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Memory:
    """A data directory, and the command line upon it."""

    directory: Path

    def keymemd(self, *words: str) -> Ended:
        """One command of `keymemd`."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.directory.parent),
            "KEYMEM_DATA_DIR": str(self.directory),
        }
        done = subprocess.run(
            [sys.executable, "-m", "keymem_daemon", *words],
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def holding(self, content: str, *keys: str) -> str:
        """Save a memory and leave the daemon running; returns the memory's id."""
        options = [word for key in keys for word in ("-k", key)]
        saved = self.keymemd("remember", content, *options, "--json")
        assert saved.code == 0, saved
        (listed,) = self.all()
        return str(listed["id"])

    def all(self) -> list[dict[str, Any]]:
        """Every memory, as `keymemd list` has it."""
        return list(self.keymemd("list", "--json").json["memories"])

    def source(self, content: str) -> dict[str, Any]:
        """Where the one memory with that content is said to come from."""
        (found,) = [memory for memory in self.all() if memory["content"] == content]
        source = self.keymemd("show", found["id"], "--json").json["memory"]["source"]
        assert isinstance(source, dict)
        return source

    def is_served(self) -> bool:
        """Whether a daemon runs."""
        return self.keymemd("status").code != 2

    def start(self) -> None:
        """Have a daemon run."""
        started = self.keymemd("start")
        assert started.code == 0, started

    def stop(self) -> None:
        """Stop the daemon, if there is one."""
        self.keymemd("stop")


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """Claude Code."""

    program: Path
    place: Place

    def run(self, *words: str | Path, **extra: str) -> Ended:
        """Any of its commands."""
        quiet = (
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_AUTOUPDATER",
        )
        return self.place.run([self.program, *words], **dict.fromkeys(quiet, "1"), **extra)

    def install(self, marketplace: Path = REPOSITORY) -> None:
        """Add the marketplace and install the plugin from it."""
        added = self.run("plugin", "marketplace", "add", marketplace, "--json")
        assert added.code == 0, added
        installed = self.run("plugin", "install", PLUGIN, "--json")
        assert installed.code == 0, installed

    def prompt(self, text: str, model: ModelApi, *options: str, tools: str = f"{CLAUDE_TOOL}*") -> Ended:
        """One turn without a person."""
        options = options or ("--output-format", "json")
        words = ("-p", text, *options, "--allowedTools", tools)
        return self.run(*words, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="not-a-key")

    def transcript(self, session: str) -> list[dict[str, Any]]:
        """The lines of one session's transcript."""
        (path,) = (self.place.home / ".claude" / "projects").glob(f"*/{session}.jsonl")
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True, slots=True)
class Codex:
    """Codex."""

    program: Path
    place: Place

    def run(self, *words: str | Path, **extra: str) -> Ended:
        """Any of its commands."""
        return self.place.run([self.program, *words], **extra)

    def install(self, marketplace: Path = REPOSITORY) -> None:
        """Add the marketplace and install the plugin from it."""
        added = self.run("plugin", "marketplace", "add", marketplace, "--json")
        assert added.code == 0, added
        installed = self.run("plugin", "add", PLUGIN, "--json")
        assert installed.code == 0, installed

    def prompt(self, text: str, model: ModelApi, name: str = CODEX_DIRECT) -> Ended:
        """One turn without a person."""
        provider = {
            "name": "local",
            "base_url": f"{model.url}/v1",
            "wire_api": "responses",
            "env_key": "LOCAL_KEY",
            "request_max_retries": 0,
            "stream_max_retries": 0,
        }
        settings = ["-c", "model_provider=local"]
        for key, value in provider.items():
            settings += ["-c", f"model_providers.local.{key}={json.dumps(value)}"]
        words = ["exec", "--json", "--skip-git-repo-check", "-m", name, *settings, text]
        return self.run(*words, LOCAL_KEY="not-a-key")

    def transcript(self, thread: str) -> list[dict[str, Any]]:
        """The lines of one thread's rollout."""
        (path,) = (self.place.home / ".codex" / "sessions").glob(f"*/*/*/rollout-*-{thread}.jsonl")
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def hooks(self) -> dict[str, Any]:
        """What Codex says about the hooks it found: `hooks`, `warnings`, `errors`."""
        with AppServer(self) as server:
            (found,) = server.ask("hooks/list", {"cwds": [str(self.place.project)]})["data"]
        assert isinstance(found, dict)
        return found

    def trust_hooks(self) -> None:
        """What a person does on the hooks screen: trust every hook as it is now."""
        with AppServer(self) as server:
            (found,) = server.ask("hooks/list", {"cwds": [str(self.place.project)]})["data"]
            trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in found["hooks"]}
            edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": trusted}
            server.ask("config/batchWrite", {"edits": [edit]})

    def servers(self) -> dict[str, dict[str, Any]]:
        """The MCP servers by name, started and asked for their tools."""
        with AppServer(self) as server:
            listed = server.ask("mcpServerStatus/list", {})["data"]
        return {found["name"]: found for found in listed}

    def skills(self) -> set[str]:
        """The names of the skills that are not Codex's own."""
        with AppServer(self) as server:
            (found,) = server.ask("skills/list", {"cwds": [str(self.place.project)]})["data"]
        return {skill["name"] for skill in found["skills"] if skill.get("scope") != "system"}


class AppServer:
    """`codex app-server`: JSON-RPC, one message a line. Every wait is bounded."""

    def __init__(self, codex: Codex) -> None:
        self._process = subprocess.Popen(
            [codex.program, "app-server"],
            cwd=codex.place.project,
            env=codex.place.environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._asked = 0
        self._unread = b""

    def __enter__(self) -> Self:
        self.ask("initialize", {"clientInfo": {"name": "keymem-tests", "version": "1"}})
        self._send({"method": "initialized"})
        return self

    def __exit__(self, *ending: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(20)
        self._process.stdout.close()

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request."""
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        deadline = time.monotonic() + 60
        while True:
            message = json.loads(self._line(deadline))
            if message.get("id") == self._asked and "method" not in message:
                assert "result" in message, message
                result = message["result"]
                assert isinstance(result, dict)
                return result

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "codex app-server does not answer"
            part = os.read(descriptor, 65_536)
            assert part, "codex app-server ended"
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line
