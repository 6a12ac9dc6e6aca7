"""Where the daemon listens and how others learn of it: sockets, and `daemon.json`. Only under the lock."""

from __future__ import annotations

import errno
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keymem_shim import rendezvous

__all__ = ["Listening", "listen", "publish", "unpublish"]

BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class Listening:
    """The open sockets, and what others have to know of them."""

    sockets: tuple[socket.socket, ...]
    socket_path: str | None
    port: int | None

    def close(self) -> None:
        """Close the sockets and remove the socket file."""
        for opened in self.sockets:
            opened.close()
        if self.socket_path is not None:
            with suppress(FileNotFoundError):
                Path(self.socket_path).unlink()


def listen(data_dir: Path, asked_port: int | None) -> Listening:
    """Listen on the data directory's socket, and on TCP when a port is asked for or there are no sockets.

    A taken port is replaced by a free one. Raises `OSError` when it can listen nowhere.
    """
    sockets: list[socket.socket] = []
    path: str | None = None
    if hasattr(socket, "AF_UNIX"):
        path = rendezvous.socket_path(str(data_dir))
        sockets.append(_unix(path))
    port: int | None = None
    if asked_port is not None or path is None:
        tcp = _tcp(asked_port or 0)
        sockets.append(tcp)
        port = tcp.getsockname()[1]
    return Listening(tuple(sockets), path, port)


def _unix(path: str) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            Path(path).unlink()  # left by a daemon that was killed: the lock, which is ours, says that it is gone
        before = os.umask(0o177)
        try:
            opened.bind(path)
        finally:
            os.umask(before)
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened


def _tcp(port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(("127.0.0.1", port))
        except OSError as problem:
            if problem.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            opened.bind(("127.0.0.1", 0))
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened


def publish(data_dir: Path, facts: dict[str, Any]) -> None:
    """Write ``facts`` to `daemon.json`: whole or not at all, 0600."""
    target = rendezvous.discovery_path(str(data_dir))
    temporary = f"{target}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        json.dump(facts, file)
        file.flush()
        os.fsync(descriptor)
    Path(temporary).replace(target)


def unpublish(data_dir: Path, instance: str) -> None:
    """Remove `daemon.json` if it still speaks of this ``instance``."""
    found = rendezvous.read_discovery(str(data_dir))
    if found is not None and found.instance == instance:
        with suppress(FileNotFoundError):
            Path(rendezvous.discovery_path(str(data_dir))).unlink()
