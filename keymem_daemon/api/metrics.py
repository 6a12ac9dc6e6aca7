"""What the daemon counts about itself since it started, as Prometheus text. Names of verbs and outcomes only, never content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

__all__ = ["Metrics"]


class Metrics:
    """Calls by verb and outcome, and the seconds they took."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count(self, verb: str, outcome: str, seconds: float) -> None:
        """One call of ``verb`` has ended: ``ok`` or an error code, after ``seconds``."""
        self._calls[verb, outcome] += 1
        self._seconds[verb] += seconds  # type: ignore[assignment]  # a Counter adds any number

    def calls(self) -> dict[str, int]:
        """How many calls of each verb there were."""
        totals: Counter[str] = Counter()
        for (verb, _outcome), count in self._calls.items():
            totals[verb] += count
        return dict(totals)

    def text(self, gauges: Mapping[str, float]) -> str:
        """The exposition: these counters and the given ``gauges``."""
        lines = ["# TYPE keymem_calls_total counter"]
        lines += [
            f'keymem_calls_total{{verb="{verb}",outcome="{outcome}"}} {count}'
            for (verb, outcome), count in sorted(self._calls.items())
        ]
        lines.append("# TYPE keymem_call_seconds_total counter")
        lines += [
            f'keymem_call_seconds_total{{verb="{verb}"}} {seconds:.6f}'
            for verb, seconds in sorted(self._seconds.items())
        ]
        for name, value in gauges.items():
            lines += [f"# TYPE keymem_{name} gauge", f"keymem_{name} {value:g}"]
        return "\n".join(lines) + "\n"
