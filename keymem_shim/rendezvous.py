"""Where the daemon of a data directory is, and whether it is really there.

Shared by the shim, the hook, the daemon and its command line: the data directory, the names in it, the discovery file
and the one question that decides liveness. Standard library only, as little of it as possible, and no writing except
the creation of private directories. Starting a daemon belongs to `launcher`.

Rules held here:

* every setting `KEYMEM_X` answers to `SUPER_MEMORY_X` as well, and an empty value counts as unset;
* a discovery file is believed only if it is a regular file of this user, and only as far as a `GET /health` answered in
  time repeats the `instance` it names. A live pid, a listening port or an old file prove nothing;
* every outcome is a value: `Ready`, `NeedsRestart` or `Unreachable`.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time

from keymem_shim import VERSION, http1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "PROTOCOL",
    "Discovery",
    "NeedsRestart",
    "Ready",
    "Unreachable",
    "data_dir",
    "default_data_dir",
    "discovery_path",
    "flag",
    "lock_path",
    "log_dir",
    "older",
    "prepare_data_dir",
    "private_dir",
    "probe",
    "read_discovery",
    "setting",
    "socket_path",
    "start_lock_path",
]

PROTOCOL = 1
"""The agreement between shim and daemon: headers, `/health`, `/session`, `/control/handover`."""

SOCKET_PATH_LIMIT = 100
"""Bytes. `sun_path` holds 104 on macOS and 108 on Linux, the closing NUL included."""

DISCOVERY_LIMIT = 65_536
"""Bytes of a discovery file that are read at most; a real one has about 300."""

TRUE_WORDS = ("1", "true", "yes", "on")
FALSE_WORDS = ("0", "false", "no", "off")


def setting(name: str) -> str | None:
    """Return the value of `KEYMEM_<name>`, else of `SUPER_MEMORY_<name>`, else None; empty counts as unset."""
    environment = os.environ  # noqa: TID251 - this module is one of the places that read it
    return environment.get("KEYMEM_" + name) or environment.get("SUPER_MEMORY_" + name) or None


def flag(name: str, *, default: bool) -> bool:
    """Return the setting `name` as a switch; a word that is neither yes nor no leaves the default."""
    word = (setting(name) or "").strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    return default


def default_data_dir() -> str:
    """Return the directory used when nothing is set: `~/.keymem`, else an existing `~/.super-memory`."""
    home = os.path.expanduser("~")
    chosen = os.path.join(home, ".keymem")
    earlier = os.path.join(home, ".super-memory")
    if not os.path.isdir(chosen) and os.path.isdir(earlier):
        return earlier
    return chosen


def data_dir() -> str:
    """Return the absolute path of the data directory, which need not exist yet."""
    given = setting("DATA_DIR")
    return os.path.abspath(os.path.expanduser(given)) if given else default_data_dir()


def discovery_path(directory: str) -> str:
    """Return the path of the file in which the daemon says where it listens."""
    return os.path.join(directory, "daemon.json")


def lock_path(directory: str) -> str:
    """Return the path of the lock that the daemon holds for life."""
    return os.path.join(directory, "daemon.lock")


def start_lock_path(directory: str) -> str:
    """Return the path of the lock under which a shim starts the daemon."""
    return os.path.join(directory, "start.lock")


def log_dir(directory: str) -> str:
    """Return the folder of every log."""
    return os.path.join(directory, "logs")


def private_dir(path: str) -> str:
    """Create `path` if need be and make it this user's alone (0700, whatever the umask); return it.

    Raises `PermissionError` if it belongs to someone else or is not a directory.
    """
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != _user():
        raise PermissionError(errno.EPERM, "is not a directory of this user", path)
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, 0o700)
    return path


def prepare_data_dir(directory: str) -> None:
    """Create the data directory and its log folder with private modes."""
    private_dir(directory)
    private_dir(log_dir(directory))


def socket_path(directory: str) -> str:
    """Return where the daemon of this data directory listens.

    `daemon.sock` in the directory itself, or, where that would not fit into a socket address, a short path derived
    from the directory's real path, in the user's runtime directory. Clients take the path from the discovery file:
    their own environment may lack `XDG_RUNTIME_DIR`.
    """
    inside = os.path.join(directory, "daemon.sock")
    if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT:
        return inside
    import hashlib  # noqa: PLC0415 - only unusually deep directories pay for it

    digest = hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:12]
    name = f"keymem-{digest}.sock"
    environment = os.environ  # noqa: TID251 - as above
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime and _is_private(runtime) and len(os.fsencode(runtime)) + 1 + len(name) <= SOCKET_PATH_LIMIT:
        return os.path.join(runtime, name)
    shared = f"/tmp/keymem-{_user()}"  # noqa: S108 - private_dir verifies that it is ours and 0700
    if os.path.islink(shared):
        raise PermissionError(errno.EPERM, "is a symbolic link where a private directory belongs", shared)
    return os.path.join(private_dir(shared), name)


class Discovery:
    """What `daemon.json` says about the daemon that wrote it; nothing in it is proven yet."""

    __slots__ = ("instance", "pid", "port", "protocol", "socket", "started_at", "token", "version")

    def __init__(
        self,
        *,
        pid: int,
        started_at: str,
        socket: str | None,
        port: int | None,
        token: str,
        instance: str,
        version: str,
        protocol: int,
    ) -> None:
        self.pid = pid
        self.started_at = started_at
        self.socket = socket
        self.port = port
        self.token = token
        self.instance = instance
        self.version = version
        self.protocol = protocol

    @property
    def address(self) -> http1.Address:
        """Where to connect: the socket if there is one, else the port on 127.0.0.1."""
        return http1.Address(self.socket, self.port)

    def authorization(self) -> tuple[str, str]:
        """Return the header that carries the token; the only place the token ever goes."""
        return ("Authorization", "Bearer " + self.token)


class Ready:
    """A daemon answered as the file says, and this version can talk to it."""

    __slots__ = ("discovery",)

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery


class NeedsRestart:
    """A daemon answered, but it is older than the one that asks; `reason` says in which way."""

    __slots__ = ("discovery", "reason")

    def __init__(self, discovery: Discovery, reason: str) -> None:
        self.discovery = discovery
        self.reason = reason


class Unreachable:
    """No daemon of this data directory answered; `reason` is for a person."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def read_discovery(directory: str) -> Discovery | None:
    """Read and check the shape of the discovery file; None if there is none that could be believed."""
    try:
        handle = os.open(discovery_path(directory), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != _user() or found.st_mode & 0o022:
            return None
        raw = os.read(handle, DISCOVERY_LIMIT)
    except OSError:
        return None
    finally:
        os.close(handle)
    return _discovery(raw)


def probe(directory: str, timeout_s: float = 1.0) -> Ready | NeedsRestart | Unreachable:
    """Ask whether `GET /health` answers in time with the instance that the file names: the one question of liveness.

    `NeedsRestart` is said only of a daemon older than the caller. A newer one is `Ready`: it is the newer side that
    keeps the agreement with the older, so two versions that run side by side never replace each other in turn.
    """
    discovery = read_discovery(directory)
    if discovery is None:
        return Unreachable("there is no daemon.json of a running daemon")
    try:
        health = _health(discovery, time.monotonic() + timeout_s)
    except (OSError, ValueError) as problem:
        return Unreachable(f"the daemon named in daemon.json does not answer ({problem})")
    if health.get("instance") != discovery.instance:
        return Unreachable("something else answers where daemon.json points")
    version, protocol = health.get("version"), health.get("protocol")
    if not isinstance(protocol, int) or protocol < PROTOCOL:
        return NeedsRestart(discovery, f"it speaks protocol {protocol}, this is {PROTOCOL}")
    if isinstance(version, str) and older(version, VERSION):
        return NeedsRestart(discovery, f"it is version {version}, this is {VERSION}")
    return Ready(discovery)


def older(version: str, other: str) -> bool:
    """Tell whether `version` comes before `other`; only the leading numbers count, so 1.2 is not older than 1.2rc1."""
    return _numbers(version) < _numbers(other)


def _numbers(version: str) -> list[int]:
    numbers: list[int] = []
    for part in version.split("."):
        digits = ""
        for character in part:
            if not ("0" <= character <= "9") or len(digits) > 9:
                break
            digits += character
        if not digits:
            break
        numbers.append(int(digits))
        if len(digits) < len(part):
            break
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _health(discovery: Discovery, deadline: float) -> dict[str, object]:
    connection = http1.Connection(discovery.address, deadline)
    try:
        connection.send("GET", "/health", [discovery.authorization()], b"", deadline)
        answer = connection.receive(deadline)
        body = answer.read(deadline) if answer.status == http1.OK else b""
    finally:
        connection.close()
    if answer.status != http1.OK:
        raise ValueError(f"HTTP status {answer.status}")
    decoded = json.loads(body)
    if not isinstance(decoded, dict):
        raise ValueError("the health answer is not an object")  # noqa: TRY004 - one error type for a bad answer
    return decoded


def _discovery(raw: bytes) -> Discovery | None:
    try:
        said = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    socket, port = said.get("socket"), said.get("port")
    texts = [said.get(name) for name in ("token", "instance", "version")]
    pid, protocol, started_at = said.get("pid"), said.get("protocol"), said.get("started_at")
    if not _is_address(socket, port) or not _are_texts(texts) or not isinstance(pid, int) or pid <= 0:
        return None
    if not isinstance(protocol, int) or isinstance(protocol, bool):
        return None
    token, instance, version = (str(text) for text in texts)
    if not token.isascii() or not token.isprintable():
        return None
    return Discovery(
        pid=pid,
        started_at=str(started_at),
        socket=socket or None,
        port=port or None,
        token=token,
        instance=instance,
        version=version,
        protocol=protocol,
    )


def _is_address(socket: object, port: object) -> bool:
    if isinstance(socket, str) and os.path.isabs(socket) and "\0" not in socket:
        return True
    return socket in (None, "") and isinstance(port, int) and 0 < port < 65_536


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _is_private(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == _user() and not found.st_mode & 0o077


def _user() -> int:
    return os.geteuid()
