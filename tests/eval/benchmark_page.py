"""The generated parts of docs/benchmarks.md: tables between markers, and nothing outside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from comparison import BM25, FLAT, SetResult
from measures import METRICS, Difference, means
from variants import OURS

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


def replace_part(name: str, text: str, page: Path = PAGE) -> None:
    """Put ``text`` between the page's markers of that name. Raises `ValueError` when the page has no such markers."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text("utf-8")
    head, first, rest = old.partition(begin)
    _, second, tail = rest.partition(end)
    if not first or not second:
        raise ValueError(f"{page.name} has no part {name!r}")
    page.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", "utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    rule = "|---|" + "---:|" * (len(head) - 1)
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def tables(results: Sequence[SetResult]) -> str:
    """All of it, set by set, then the tables over all sets."""
    parts = [_set_part(result) for result in results]
    if any(result.strangers for result in results):
        parts.append(_strangers_part(results))
    return "\n\n".join(parts)


def _set_part(result: SetResult) -> str:
    questions = result.questions
    systems = [
        [f"**{name}**" if name == OURS else name, *(f"{means(rows)[metric]:.3f}" for metric in METRICS)]
        for name, rows in result.rows.items()
    ]
    parts = [
        f"### {questions.dataset}\n\n{questions.size} memories, {questions.answerable} questions with an answer.",
        table(["", *METRICS], systems),
        f"keymem minus …, with the 95 % interval of the paired bootstrap over questions ({OURS} is clearly better where it is above zero):",
        table(
            ["", *next(iter(result.differences().values()))],
            [[name, *(_interval(d) for d in by.values())] for name, by in result.differences().items()],
        ),
    ]
    if len(set(result.categories)) > 1:
        named = [name for name in result.rows if name in {BM25, FLAT, OURS}]
        parts += [
            "R@5 by category:",
            table(
                ["", "questions", *named],
                [[category, f"{by['questions']:.0f}", *(f"{by[name]:.3f}" for name in named)] for category, by in result.by_category().items()],
            ),
        ]
    if result.ablations:
        full = means(result.rows[OURS])
        chosen = ("R@5", "all@5", "MRR")
        parts += [
            "What each part is worth: the change when it alone is taken out.",
            table(
                ["", *chosen],
                [[name, *(f"{means(rows)[m] - full[m]:+.3f}" for m in chosen)] for name, rows in result.ablations.items()],
            ),
        ]
    return "\n\n".join(parts)


def _strangers_part(results: Sequence[SetResult]) -> str:
    head = ["", *(result.questions.name for result in results)]
    rows: list[list[str]] = []

    def add(label: str, values: Sequence[float | None]) -> None:
        if any(value is not None for value in values):
            rows.append([label, *("–" if value is None else f"{value:.3f}" for value in values)])

    add("answerable: a preview is shown", [r.previews.get("preview_shown") for r in results])
    add("answerable: the preview is a right memory", [r.previews.get("preview_hit@1") for r in results])
    add("answerable: a right memory hangs on a listed key", [r.previews.get("walkable") for r in results])
    add("answerable: share of R@5 that passes the gate", [r.previews.get("R@5_kept_by_gate") for r in results])
    add("answerable: the hook adds something", [r.hook.get("hook_fires") for r in results])
    add("answerable: share of right memories among those the hook adds", [r.hook.get("hook_precision") for r in results])
    groups = {
        "foreign": "questions of another space",
        "swapped": "names swapped",
        "unanswerable": "questions without an answer",
        "coding": "coding prompts",
        "held_back": "coding prompts held back",
    }
    for group, label in groups.items():
        add(f"{label}: a preview is shown", [r.strangers.get(f"{group}_preview") for r in results])
        add(f"{label}: the hook adds something", [r.strangers.get(f"{group}_hook") for r in results])
        add(f"{label}: AUROC of the gate's evidence", [r.strangers.get(f"{group}_auroc") for r in results])
    add("names swapped: AUROC of the hook's evidence", [r.strangers.get("swapped_hook_auroc") for r in results])
    retries = [r.retries for r in results]
    lines = [
        f"{result.questions.name}: {tried.misses} answerable questions refused, {tried.recoverable} of them recoverable by some key; the first "
        f"nearest key leads to a right preview in {tried.preview}, and has a right memory on it in {tried.reachable}."
        for result, tried in zip(results, retries, strict=True)
        if tried is not None
    ]
    return "\n\n".join(["### When there is nothing to find", table(head, rows), "Misses and `nearest_keys`:", "\n".join(f"- {line}" for line in lines)])


def _interval(d: Difference) -> str:
    text = f"{d.mean:+.3f} [{d.low:+.3f}, {d.high:+.3f}]"
    return f"**{text}**" if d.low > 0 else text
