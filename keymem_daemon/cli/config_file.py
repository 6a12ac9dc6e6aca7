"""`config.toml`, changed by one line: everything else in it stays as its owner wrote it, comments included.

A change is made in the text and then read back: unless the file means what it meant before but for the one setting, nothing is
written. The file is replaced whole or not at all, 0600; one that is a link stays a link.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.settings import CONFIG_FILE
from keymem_shim import rendezvous

__all__ = ["changed", "read", "write"]

BY_HAND = f"Change {CONFIG_FILE} in the data directory by hand."


def read() -> str:
    """The file's text; empty when there is none."""
    try:
        return _path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandFailed(f"{CONFIG_FILE} cannot be read: {problem}", BY_HAND) from problem


def changed(text: str, name: str, value: object) -> str:
    """``text`` with ``name`` set to ``value``, or without it when that is ``None``. Raises `CommandFailed`."""
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise CommandFailed(f"{CONFIG_FILE} is not valid TOML: {problem}", BY_HAND) from None
    expected.pop(name, None)
    lines = text.splitlines(keepends=True)
    top = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    setting = re.compile(rf"""\s*(?:{name}|"{name}"|'{name}')\s*=""")
    kept = [line for line in lines[:top] if not setting.match(line)]
    if value is not None:
        at = next((at for at, line in enumerate(lines[:top]) if setting.match(line)), len(kept))
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
        kept.insert(at, f"{name} = {_literal(value)}\n")
        expected[name] = _plain(value)
    result = "".join([*kept, *lines[top:]])
    try:
        meant = tomllib.loads(result)
    except tomllib.TOMLDecodeError:
        meant = None
    if meant != expected:
        raise CommandFailed(f"{name} cannot be changed without touching the rest of {CONFIG_FILE}", BY_HAND)
    return result


def write(text: str) -> None:
    """Replace the file. Raises `CommandFailed`."""
    try:
        rendezvous.prepare_data_dir(rendezvous.data_dir())
        target = Path(os.path.realpath(_path()))
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except (OSError, UnicodeEncodeError) as problem:
        raise CommandFailed(f"{CONFIG_FILE} cannot be written: {problem}", "Nothing was changed.") from problem


def _path() -> Path:
    return Path(rendezvous.data_dir()) / CONFIG_FILE


def _plain(value: object) -> bool | int | float | str:
    return value if isinstance(value, bool | int | float) else str(value)


def _literal(value: object) -> str:
    plain = _plain(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, int | float):
        return repr(plain)
    # A JSON string is a TOML basic string, but for the one control character that JSON leaves alone.
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007F")
