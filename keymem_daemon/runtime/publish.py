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

from keymem_daemon.runtime.footing import inode
from keymem_shim import rendezvous

__all__ = ["Listening", "listen", "publish", "require_publishable", "unpublish"]

BACKLOG: Final = 512
ROOM_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True)
class Listening:
    """The open sockets, and what others have to know of them."""

    sockets: tuple[socket.socket, ...]
    socket_path: str | None
    port: int | None
    socket_inode: tuple[int, int] | None

    def reachable(self) -> bool:
        """Whether somebody who connects to the path or the port comes here."""
        return self.port is not None or self.socket_path is None or inode(self.socket_path) == self.socket_inode

    def close(self) -> None:
        """Close the sockets and remove the socket file, unless another has taken its place."""
        for opened in self.sockets:
            opened.close()
        if self.socket_path is not None and inode(self.socket_path) == self.socket_inode:
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
    return Listening(tuple(sockets), path, port, None if path is None else inode(path))


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


def require_publishable(data_dir: Path) -> None:
    """Raise `OSError` when `daemon.json` could not be written; cheap, so that a start in vain ends soon."""
    target = Path(rendezvous.discovery_path(str(data_dir)))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    try:
        _write(_unfinished(target), " " * ROOM_BYTES)
    finally:
        _unfinished(target).unlink(missing_ok=True)


def publish(data_dir: Path, facts: dict[str, Any]) -> None:
    """Write ``facts`` to `daemon.json`: whole or not at all, 0600. Raises `OSError`."""
    target = Path(rendezvous.discovery_path(str(data_dir)))
    unfinished = _unfinished(target)
    try:
        _write(unfinished, json.dumps(facts))
        unfinished.replace(target)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _unfinished(target: Path) -> Path:
    """Always the same name: whoever writes it holds the lock, and what a killed daemon left is written over."""
    return target.with_name(target.name + ".part")


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def unpublish(data_dir: Path, instance: str) -> None:
    """Remove `daemon.json` if it still speaks of this ``instance``."""
    found = rendezvous.read_discovery(str(data_dir))
    if found is not None and found.instance == instance:
        with suppress(FileNotFoundError):
            Path(rendezvous.discovery_path(str(data_dir))).unlink()
