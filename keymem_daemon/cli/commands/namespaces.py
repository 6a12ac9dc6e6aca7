"""Show which directory stands for which namespaces, and what the current one stands for; or map a directory.

    keymemd namespaces                    all mappings
    keymemd namespaces map PATH NAME…     PATH reads these and default, and writes to the first
    keymemd namespaces unmap PATH         PATH reads everything again

A mapping holds for the directory and all below it; the longest one counts. A linked git worktree stands for its repository. Mappings
are kept in namespaces.json in the data directory and are in force at once.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keymem_daemon.cli.failure import USAGE, CommandFailed
from keymem_daemon.cli.terminal import bold, clean, dim, print_json, say, yellow
from keymem_daemon.hosts.namespaces import CONFIG_FILE, MAPPING_FILE, Mapped, Namespaces, checked_names
from keymem_daemon.hosts.worktrees import place_of
from keymem_shim import identity, rendezvous

__all__ = ["configure", "run"]

BY_HAND = f"Mend {MAPPING_FILE} in the data directory by hand."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("action", metavar="ACTION", nargs="?", choices=("map", "unmap"), help="map or unmap")
    parser.add_argument("path", metavar="PATH", nargs="?", help="the directory")
    parser.add_argument("names", metavar="NAME", nargs="*", help="namespaces, the one to write to first")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    namespaces = Namespaces(Path(rendezvous.data_dir()))
    if given.action == "map":
        if given.path is None or not given.names:
            raise CommandFailed("map needs a PATH and at least one NAME", "See `keymemd namespaces --help`.", USAGE)
        _map(_absolute(given.path), given.names)
    elif given.action == "unmap":
        if given.path is None or given.names:
            raise CommandFailed("unmap needs one PATH", "See `keymemd namespaces --help`.", USAGE)
        _unmap(_absolute(given.path), namespaces)
    _show(namespaces, given.json)
    return 0


def _map(path: str, names: list[str]) -> None:
    usable, refused = checked_names(names)
    if refused:
        raise CommandFailed(clean(refused[0]), "Nothing was changed.", USAGE)
    entries = _entries()
    place = place_of(path)
    same = next((written for written in entries if _stands_for(written, place)), path)
    _write({**entries, same: list(usable)})


def _unmap(path: str, namespaces: Namespaces) -> None:
    entries = _entries()
    place = place_of(path)
    kept = {written: names for written, names in entries.items() if not _stands_for(written, place)}
    if len(kept) == len(entries):
        if any(mapped.place == place and mapped.file == CONFIG_FILE for mapped in namespaces.mappings()):
            raise CommandFailed(f"{clean(path)} is mapped in {CONFIG_FILE}", f"Take it out of {CONFIG_FILE} by hand.")
        raise CommandFailed(f"{clean(path)} is not mapped", "`keymemd namespaces` lists the mappings.")
    _write(kept)


def _show(namespaces: Namespaces, as_json: bool) -> None:
    mappings, problems = namespaces.mappings(), namespaces.problems()
    here = identity.working_directory() or None
    found = namespaces.mapping_of(here)
    if as_json:
        print_json(
            {
                "mappings": [_view(mapped) for mapped in mappings],
                "directory": here,
                "mapping": None if found is None else _view(found),
                "problems": list(problems),
            }
        )
        return
    for mapped in mappings:
        elsewhere = "" if str(mapped.place) == mapped.written else dim(f"  (stands for {clean(str(mapped.place))})")
        say(f"{bold(clean(mapped.written))}  {_names(mapped)}{elsewhere}{dim(f'  {mapped.file}')}")
    if not mappings:
        say("No directory is mapped: every client reads all namespaces and writes to default.")
    elif found is None:
        say("This directory is not mapped: it reads all namespaces and writes to default.")
    else:
        say(f"This directory reads {_names(found, reading=True)} and writes to {clean((*found.names, 'default')[0])}.")
    say(*(yellow(clean(problem)) for problem in problems))


def _view(mapped: Mapped) -> dict[str, Any]:
    return {"path": mapped.written, "place": str(mapped.place), "namespaces": list(mapped.names), "file": mapped.file}


def _names(mapped: Mapped, *, reading: bool = False) -> str:
    names = dict.fromkeys((*mapped.names, "default")) if reading or not mapped.names else mapped.names
    return clean(", ".join(names))


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - `..` is folded without following links


def _stands_for(written: str, place: Path) -> bool:
    path = Path(os.path.expanduser(written))  # noqa: PTH111 - a home that is not known leaves it as it is
    return path.is_absolute() and place_of(str(path)) == place


def _entries() -> dict[str, object]:
    """What `namespaces.json` says now, in its order."""
    try:
        found = json.loads(_path().read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as problem:
        raise CommandFailed(f"{MAPPING_FILE} cannot be read: {problem}", BY_HAND) from None
    if not isinstance(found, dict):
        raise CommandFailed(f"{MAPPING_FILE} is no JSON object", BY_HAND)
    return found


def _write(entries: Mapping[str, object]) -> None:
    """Replace the file whole or not at all, 0600; one that is a link stays a link."""
    try:
        rendezvous.prepare_data_dir(rendezvous.data_dir())
        target = Path(os.path.realpath(_path()))
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)
            file.write(json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except (OSError, UnicodeEncodeError) as problem:
        raise CommandFailed(f"{MAPPING_FILE} cannot be written: {problem}", "Nothing was changed.") from problem


def _path() -> Path:
    return Path(rendezvous.data_dir()) / MAPPING_FILE
