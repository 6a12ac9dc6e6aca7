"""How well memories are found: keymem against BM25, flat vectors and the textbook plan, on any labelled sets.

    python tests/eval/run.py [SET.json …] [--json OUT] [--write-docs] [--daemon DATA_DIR] [--limit N] [--shuffle SEED] [--quick]

Without a set, those that KEYMEM_EVAL_SETS names (paths with the system's separator between) and the project's own, home.json.
In the process each set has a store of its own; a daemon is given the sets one after the other, each in its namespaces, and should
be fresh: the numbers are for exactly the set's memories. ``--shuffle`` saves the memories of each space in another order.
``--quick`` leaves out ablations, strangers and retries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmark_page import replace_part, tables
from comparison import SetResult, compared
from question_sets import QuestionSet, load_sets
from subjects import RememberingEncoder, daemon_subject, engine_subject, has_korean

HOME: Final = Path(__file__).with_name("home.json")
VARIABLE: Final = "KEYMEM_EVAL_SETS"


def chosen_sets(given: Sequence[Path]) -> list[Path]:
    """The sets on the command line, else those of the environment and our own."""
    named = os.environ.get(VARIABLE, "").split(os.pathsep)  # noqa: TID251 - a runner's option, not the product's
    return list(given) or [*(Path(name) for name in named if name), HOME]


async def measured(sets: Sequence[QuestionSet], daemon: Path | None, *, quick: bool) -> list[SetResult]:
    """Every set, measured."""
    encoder = RememberingEncoder()
    say = partial(print, flush=True)
    results: list[SetResult] = []
    for questions in sets:
        measure = partial(compared, questions=questions, encoder=encoder, say=say, ablate=not quick, strangers=not quick)
        if daemon is not None:
            async with daemon_subject(daemon) as running:
                results.append(await measure(running))
        else:
            async with engine_subject(encoder, korean=has_korean([questions])) as subject:
                results.append(await measure(subject))
    return results


def main() -> None:
    """Parse, measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    parser.add_argument("--write-docs", action="store_true", help="write the tables into docs/benchmarks.md")
    parser.add_argument("--daemon", type=Path, metavar="DATA_DIR", help="measure the daemon that serves this directory")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N questions a space")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="save the memories in another order")
    parser.add_argument("--quick", action="store_true", help="rankings only")
    given = parser.parse_args()
    sets = [questions.limited(given.limit) for questions in load_sets(chosen_sets(given.sets))]
    if given.shuffle is not None:
        sets = [questions.shuffled(given.shuffle) for questions in sets]
    results = asyncio.run(measured(sets, given.daemon, quick=given.quick))
    if given.json is not None:
        given.json.write_text(json.dumps({"sets": [result.as_json() for result in results]}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if given.write_docs:
        replace_part("results", tables(results))


if __name__ == "__main__":
    main()
