"""One set, measured: every system's rows over the same questions, and everything that follows from them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from baselines import Baseline, FlatVectors, PackagedBm25
from honesty import Retries, Shares, gold_ids, hook_measured, nearest_keys_measured, strangers_measured
from measures import METRICS, Difference, difference, mean, means, percentile, scored
from question_sets import QuestionSet
from subjects import EngineSubject, Ids, RememberingEncoder, Subject, import_set
from variants import ABLATIONS, OURS, TEXTBOOK, textbook, weighted

TOP_K: Final = 10
BM25: Final = "BM25 (bm25s)"
FLAT: Final = "flat vectors"
COMPARED: Final = ("R@5", "all@5", "MRR")

Row = dict[str, float]
Ranker = Callable[[str, str], Awaitable[list[str]]]
Say = Callable[[str], None]


@dataclass(slots=True)
class SetResult:
    """Everything measured on one set. ``rows`` are per system, over the same answerable questions in the same order."""

    questions: QuestionSet
    rows: dict[str, list[Row]] = field(default_factory=dict)
    ablations: dict[str, list[Row]] = field(default_factory=dict)
    categories: list[str] = field(default_factory=list)
    previews: Shares = field(default_factory=dict)
    strangers: Shares = field(default_factory=dict)
    hook: Shares = field(default_factory=dict)
    retries: Retries | None = None
    speed: dict[str, float] = field(default_factory=dict)

    def differences(self) -> dict[str, dict[str, Difference]]:
        """Ours minus each baseline, by metric."""
        ours = self.rows[OURS]
        return {
            name: {metric: difference([r[metric] for r in ours], [r[metric] for r in rows]) for metric in COMPARED}
            for name, rows in self.rows.items()
            if name != OURS
        }

    def by_category(self) -> dict[str, dict[str, float]]:
        """R@5 of each system by category, and how many questions there are."""
        result: dict[str, dict[str, float]] = {}
        for category in dict.fromkeys(self.categories):
            places = [i for i, c in enumerate(self.categories) if c == category]
            values = {name: mean([rows[i]["R@5"] for i in places]) for name, rows in self.rows.items()}
            result[category] = {"questions": float(len(places)), **values}
        return result

    def as_json(self) -> dict[str, Any]:
        """Numbers only, for a file."""
        return {
            "name": self.questions.name,
            "dataset": self.questions.dataset,
            "memories": self.questions.size,
            "questions": self.questions.answerable,
            "systems": {name: _rounded(means(rows)) for name, rows in self.rows.items()},
            "ours_minus": {
                name: {metric: [round(d.mean, 4), round(d.low, 4), round(d.high, 4)] for metric, d in by.items()}
                for name, by in self.differences().items()
            },
            "ablations": {name: _rounded(means(rows)) for name, rows in self.ablations.items()},
            "categories": {name: _rounded(values) for name, values in self.by_category().items()},
            "previews": _rounded(self.previews),
            "strangers": _rounded(self.strangers),
            "hook": _rounded(self.hook),
            "retries": None
            if self.retries is None
            else {
                "misses": self.retries.misses,
                "recoverable": self.retries.recoverable,
                "preview": self.retries.preview,
                "reachable": self.retries.reachable,
            },
            "speed": _rounded(self.speed),
        }


async def compared(
    subject: Subject, questions: QuestionSet, encoder: RememberingEncoder, say: Say, *, ablate: bool, strangers: bool
) -> SetResult:
    """Import the set into ``subject`` and measure. The plan's variants need an engine in this process."""
    result = SetResult(questions)
    result.categories = [q.category for space in questions.spaces for q in space.answerable]
    imported = await import_set(subject, questions)
    ids = imported.ids
    result.speed["memories_per_s"] = imported.memories_per_s
    say(f"{questions.dataset}: {questions.size} memories, {questions.answerable} answerable questions")
    took_ms: list[float] = []

    async def ours(query: str, namespace: str) -> list[str]:
        began = time.perf_counter()
        found = await subject.retrieve(query, namespace, TOP_K)
        took_ms.append((time.perf_counter() - began) * 1000)
        return found

    baselines: dict[str, Baseline] = {
        BM25: PackagedBm25(questions.spaces, ids),
        FLAT: FlatVectors(questions.spaces, ids, encoder),
    }
    for name, baseline in baselines.items():
        result.rows[name] = await _rows(_ranker(baseline), questions, ids)
        say(_line(name, result.rows[name]))
    if isinstance(subject, EngineSubject):
        with textbook(subject):
            result.rows[TEXTBOOK] = await _rows(subject_ranker(subject), questions, ids)
        say(_line(TEXTBOOK, result.rows[TEXTBOOK]))
    result.rows[OURS] = await _rows(ours, questions, ids)
    result.speed["retrieve_ms_p50"], result.speed["retrieve_ms_p95"] = percentile(took_ms, 0.5), percentile(took_ms, 0.95)
    say(_line(OURS, result.rows[OURS]))
    result.previews = await _previews(subject, questions, ids, result.rows[OURS])
    say(_pairs("recall", result.previews))
    result.hook = await hook_measured(subject, questions, ids)
    say(_pairs("hook", result.hook))
    if ablate and isinstance(subject, EngineSubject):
        for name, weights in ABLATIONS.items():
            with weighted(subject, weights):
                result.ablations[name] = await _rows(subject_ranker(subject), questions, ids)
            say(_line(name, result.ablations[name]))
    if strangers:
        result.strangers = await strangers_measured(subject, questions)
        say(_pairs("strangers", result.strangers))
        result.retries = await nearest_keys_measured(subject, questions, ids)
        say(f"  nearest keys: {result.retries}")
    return result


def subject_ranker(subject: Subject) -> Ranker:
    """Direct retrieval of the best ten."""

    async def ranking(query: str, namespace: str) -> list[str]:
        return await subject.retrieve(query, namespace, TOP_K)

    return ranking


async def rows_of(subject: EngineSubject, questions: QuestionSet, ids: Ids) -> list[Row]:
    """The metrics of each answerable question under the engine's present weights."""
    return await _rows(subject_ranker(subject), questions, ids)


def _ranker(baseline: Baseline) -> Ranker:
    async def ranking(query: str, namespace: str) -> list[str]:
        return baseline.ranking(query, namespace, TOP_K)

    return ranking


async def _rows(ranker: Ranker, questions: QuestionSet, ids: Ids) -> list[Row]:
    return [
        scored(await ranker(question.query, space.namespace), gold_ids(question, space, ids))
        for space in questions.spaces
        for question in space.answerable
    ]


async def _previews(subject: Subject, questions: QuestionSet, ids: Ids, rows: list[Row]) -> Shares:
    """What recall shows: how often anything, how often the right memory, and how much R@5 would be left behind its gate.

    ``walkable``: a gold memory hangs on one of the keys that recall lists, so that an agent can walk to it.
    """
    shown, right, walkable = [], [], []
    for space in questions.spaces:
        keys = {memory.ref: {key.casefold() for key in memory.keys} for memory in space.memories}
        for question in space.answerable:
            answer = await subject.recall(question.query, question.query, space.namespace)
            memories = [memory["id"] for memory in answer["memories"]]
            gold = gold_ids(question, space, ids)
            shown.append(float(bool(memories)))
            right.append(float(bool(memories) and memories[0] in gold))
            listed = {
                surface.casefold()
                for key in (*answer["keys"], *(k for m in answer["memories"] for k in m["connected_keys"]))
                for surface in (key["concept"], *key.get("aliases", ()))
            }
            walkable.append(float(bool(right[-1]) or any(keys[ref] & listed for ref in question.gold)))
    kept = sum(row["R@5"] for row, there in zip(rows, shown, strict=True) if there) / max(1e-9, sum(row["R@5"] for row in rows))
    return {"preview_shown": mean(shown), "preview_hit@1": mean(right), "walkable": mean(walkable), "R@5_kept_by_gate": kept}


def _rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: value if value is None else round(value, 4) for name, value in values.items()}


def _line(name: str, rows: list[Row]) -> str:
    average = means(rows)
    return f"  {name:<34}" + "  ".join(f"{metric} {average[metric]:.4f}" for metric in METRICS if metric in average)


def _pairs(name: str, values: Shares) -> str:
    return f"  {name}: " + "  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items())
