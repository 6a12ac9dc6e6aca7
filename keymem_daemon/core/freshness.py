"""How sure a memory still is: freshness decays with time since the last confirmation, depth grows with confirmations.

Reading is not confirming: nothing here is ever called because a memory was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from keymem_daemon.core.model import DecayProfile, Memory

FreshnessStatus = Literal["fresh", "aging", "stale"]

SECONDS_PER_DAY: Final = 86_400.0
DEPTH_PER_CONFIRMATION: Final = 0.05
FRESH_FROM: Final = 0.5
AGING_FROM: Final = 0.125
DEEP_ABOVE: Final = 0.7


@dataclass(frozen=True, slots=True)
class HalfLives:
    """Days until freshness halves, per decay profile; ``permanent`` never decays."""

    transient: float = 7.0
    standard: float = 90.0
    stable: float = 365.0

    def days(self, profile: DecayProfile) -> float | None:
        """The half-life in days, or ``None`` for a memory that does not decay."""
        match profile:
            case "transient":
                return self.transient
            case "standard":
                return self.standard
            case "stable":
                return self.stable
            case "permanent":
                return None


@dataclass(frozen=True, slots=True)
class Validity:
    """What every view of a memory says about how far to trust it."""

    freshness: float
    status: FreshnessStatus
    age_days: float
    last_confirmed_at: float
    confirmation_count: int
    decay_profile: DecayProfile

    @property
    def verification_recommended(self) -> bool:
        """Not fresh any more: qualify it when it is used."""
        return self.status != "fresh"

    @property
    def verification_required(self) -> bool:
        """Stale: not to be asserted before somebody confirmed it."""
        return self.status == "stale"


def freshness(memory: Memory, now: float, half_lives: HalfLives) -> float:
    """``0.5 ^ (days since confirmation / half-life)``, in (0, 1]; a clock that went backwards counts as no time."""
    days = half_lives.days(memory.decay_profile)
    if days is None:
        return 1.0
    elapsed = max(0.0, now - memory.last_confirmed_at) / SECONDS_PER_DAY
    return float(0.5 ** min(elapsed / days, 1_000.0))


def validity(memory: Memory, now: float, half_lives: HalfLives) -> Validity:
    """Freshness with its bands: fresh ≥ 0.5 > aging ≥ 0.125 > stale. Age counts from creation, in days."""
    value = freshness(memory, now, half_lives)
    status: FreshnessStatus = "fresh" if value >= FRESH_FROM else "aging" if value >= AGING_FROM else "stale"
    return Validity(
        freshness=value,
        status=status,
        age_days=max(0.0, now - memory.created_at) / SECONDS_PER_DAY,
        last_confirmed_at=memory.last_confirmed_at,
        confirmation_count=memory.confirmation_count,
        decay_profile=memory.decay_profile,
    )


def ranking_factor(memory: Memory, now: float, half_lives: HalfLives) -> float:
    """Depth factor ``0.9 + 0.1 × depth`` times freshness factor ``0.2 + 0.8 × freshness``."""
    return depth_factor(memory) * freshness_factor(memory, now, half_lives)


def depth_factor(memory: Memory) -> float:
    """``0.9 + 0.1 × depth``."""
    return 0.9 + 0.1 * memory.depth


def freshness_factor(memory: Memory, now: float, half_lives: HalfLives) -> float:
    """``0.2 + 0.8 × freshness``."""
    return 0.2 + 0.8 * freshness(memory, now, half_lives)


def deepened(depth: float) -> float:
    """Depth after one more confirmation, at most 1. Rounded, so that fourteen confirmations are 0.7 and not a little more."""
    return min(1.0, round(depth + DEPTH_PER_CONFIRMATION, 9))


def superseded_depth(depth: float) -> float:
    """Depth of a memory that was corrected: × 0.3, and × 0.8 when it was deep (> 0.7)."""
    return depth * (0.8 if depth > DEEP_ABOVE else 0.3)
