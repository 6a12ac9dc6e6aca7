"""How a memory, a key and trust in them look in one line: the same wherever they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keymem_daemon.cli.terminal import bold, clean, columns, dim

__all__ = ["cut", "key_line", "memory_lines", "trust"]


def key_line(key: Mapping[str, Any]) -> str:
    """Concept, memories, id."""
    count = key["memory_count"]
    noun = "memory" if count == 1 else "memories"
    hub = ", a hub" if key.get("is_hub") else ""
    facts = f"({count:,} {noun}{hub}) {key['key_id']}"
    return f"{clean(key['concept'])} {dim(facts)}"


def memory_lines(memory: Mapping[str, Any]) -> list[str]:
    """The id with the beginning of the text; namespace, keys and trust."""
    facts = f"{clean(memory['namespace'])} · {clean(', '.join(memory['keys']))} · {trust(memory['validity'])}"
    room = columns()
    return [f"{bold(memory['id'])}  {cut(memory['content'], room - 14)}", dim("  " + cut(facts, room - 2))]


def cut(text: str, room: int) -> str:
    """``text`` on one line of at most ``room`` characters."""
    line = clean(text)
    return line if len(line) <= room else line[: max(1, room - 1)] + "…"


def trust(validity: Mapping[str, Any]) -> str:
    """How fresh, and how old in days."""
    return f"{validity['status']}, {validity['age_days']:g} days"
