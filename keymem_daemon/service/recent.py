"""The last recalls and the keys that they reached only weakly: what learning may follow when a memory is read through one.

A ring of 32 recalls, each good for five minutes. Nothing here is stored, and nothing here is a record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

RECALLS: Final = 32
SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class RecentRecall:
    """``weak`` maps key ids to their cosine with ``query``; ``learned`` are keys that a learned alias named."""

    at: float
    session: str | None
    query: str
    weak: Mapping[str, float]
    learned: frozenset[str]


class RecentRecalls:
    """The ring."""

    def __init__(self) -> None:
        self._ring: deque[RecentRecall] = deque(maxlen=RECALLS)

    def note(self, recall: RecentRecall) -> None:
        """A recall has answered."""
        self._ring.append(recall)

    def leading_to(self, key_id: str, session: str | None, now: float) -> RecentRecall | None:
        """The session's latest recall that reached the key weakly or by a learned alias, if it is recent."""
        for recall in reversed(self._ring):
            if now - recall.at > SECONDS:
                continue
            if recall.session == session and (key_id in recall.weak or key_id in recall.learned):
                return recall
        return None

    def forget(self, key_id: str) -> None:
        """Nothing may be learned of this key from what has been so far."""
        kept = [
            RecentRecall(r.at, r.session, r.query, {k: v for k, v in r.weak.items() if k != key_id}, r.learned - {key_id})
            for r in self._ring
        ]
        self._ring.clear()
        self._ring.extend(kept)
