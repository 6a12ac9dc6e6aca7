"""Costs of the lexical index and of the word vectors: microseconds an add, milliseconds a query.

Run it by hand: ``python tests/bench/bench_lexical.py [documents ...]`` (default 1000 10000 100000). Texts are synthetic, with word
frequencies that fall off like 1/rank from rank 100 (what is more frequent are stop words) to 50,000, 24 words a text: about
the density of short English memories without their stop words. Queries have eight words, all of one text.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from keymem_daemon.index.lexical import LexicalIndex
from keymem_daemon.index.tokens import Tokenizer
from keymem_daemon.index.vectors import VectorIndex, WordVectors

FIRST_RANK = 100
VOCABULARY = 50_000
WORDS = 24
SAMPLES = 300

_Item = TypeVar("_Item")


def _word(rank: int) -> str:
    letters = "x"
    while rank:
        rank, letter = divmod(rank, 26)
        letters += chr(97 + letter)
    return letters


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _texts(count: int, source: np.random.Generator) -> list[str]:
    ranks = (FIRST_RANK * np.exp(source.random((count, WORDS)) * np.log(VOCABULARY / FIRST_RANK))).astype(int)
    return [" ".join(map(_word, row)) for row in ranks.tolist()]


def _median_us(call: Callable[[_Item], object], items: Iterable[_Item]) -> float:
    taken: list[float] = []
    for item in items:
        start = time.perf_counter()
        call(item)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e6


def _lexical(count: int) -> str:
    source = np.random.default_rng(1)
    tokenizer, index = Tokenizer(), LexicalIndex()
    texts = _texts(count + SAMPLES, source)
    for number, text in enumerate(texts[:count]):
        index.add(f"{number:012x}", f"space{number % 5}", tokenizer.analyze(text))
    fresh = [(f"f{number:011x}", text) for number, text in enumerate(texts[count:])]
    analyses = {doc_id: tokenizer.analyze(text) for doc_id, text in fresh}
    analyse = _median_us(tokenizer.analyze, [text for _, text in fresh])
    add = _median_us(lambda doc_id: index.add(doc_id, "space1", analyses[doc_id]), analyses)
    queries = [dict.fromkeys(tokenizer.terms(" ".join(text.split()[:8])), 1.0) for text in texts[:SAMPLES]]
    everywhere = _median_us(lambda query: index.search(query, None, 50), queries)
    scope = frozenset({"space1"})
    scoped = _median_us(lambda query: index.search(query, scope, 50), queries)
    ids = [f"{number:012x}" for number in range(50)]
    matches = _median_us(lambda query: index.matches(ids, list(query)), queries)
    remove = _median_us(index.remove, analyses)
    cells = (
        f"{count:,}",
        f"{analyse:.0f}",
        f"{add:.0f}",
        f"{remove:.0f}",
        f"{everywhere / 1e3:.2f}",
        f"{scoped / 1e3:.2f}",
        f"{matches / 1e3:.2f}",
    )
    return "| " + " | ".join(cells) + " |"


def _vectors(count: int) -> str:
    source = np.random.default_rng(2)
    words, keys = WordVectors(512), VectorIndex(512)
    rows = source.standard_normal((count, 512)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for number, row in enumerate(rows):
        words.upsert(f"w{number}", row)
        keys.upsert(f"k{number}", row)
    queries = rows[:12] + 0.02 * rows[12:24]
    expand = _median_us(words.search, [queries] * 15)
    search = _median_us(lambda asked: keys.search(asked, 3, 0.5), [queries] * 15)
    upsert = _median_us(lambda number: keys.upsert(f"new{number}", rows[number]), range(200))
    return f"| {count:,} | {upsert:.0f} | {search / 1e3:.1f} | {expand / 1e3:.1f} |"


def main(sizes: list[int]) -> None:
    """Print two tables."""
    with threadpool_limits(limits=1, user_api="blas"):
        _say(
            "| documents | analyse µs | add µs | remove µs | query ms | query in a fifth ms | match 50 documents ms |\n"
            + "|---" * 7
            + "|"
        )
        for size in sizes:
            _say(_lexical(size))
        _say("\n| rows × 512 | upsert µs | 12 key queries ms | 12 word queries ms |\n" + "|---" * 4 + "|")
        for size in sizes:
            _say(_vectors(size))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1_000, 10_000, 100_000])
