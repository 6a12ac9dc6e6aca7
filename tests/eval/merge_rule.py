"""How the builtin profile's merge rule judges labelled pairs of keys: a confusion table, and every wrong merge by name.

    python tests/eval/merge_rule.py PAIRS.json [DISTINCT.tsv]

PAIRS.json holds ``key_pairs``: objects with ``kind``, ``a``, ``b`` and ``label`` (same, distinct, unrelated). The pairs of
``distinct_pairs.tsv`` beside this file are judged with them, as concept keys: the type under which a wrong merge is possible.
Each is judged three times: in a sparse store (the other word is the only key; both orders), in a full one (every word of all
files is a key of its own; both orders), and in one that grows (all words are written in turn, merged forms become aliases; a
pair is merged when both words end in one key). Exits with 1 when a pair that is not "same" merges.

    python tests/eval/merge_rule.py --holdout

asks the rule without the lexicon's help, on the lexicon's own words, which are a larger sample of right and wrong pairs than
anybody would label: Korean against English in a full store with no lexicon, and in a sparse store where the lexicon lacks
half of its groups and every key is from the lacking half.
"""

# ruff: noqa: T201, S311 - a runner prints, and its sample is no secret
from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

from keymem_daemon.core.closed_classes import closed_class
from keymem_daemon.core.lexicon import Lexicon, load_lexicon
from keymem_daemon.core.merging import Create, MergeInto, Neighbour, crosses_scripts, decide_merge
from keymem_daemon.core.profiles import PROFILES
from keymem_daemon.core.text import fold, scripts
from keymem_daemon.embed.builtin import BuiltinEncoder

Matrix = npt.NDArray[np.float32]
_NEAREST = 24


@dataclass(frozen=True, slots=True)
class Pair:
    """Two surfaces, what kind of pair they are, and whether they are the same concept."""

    kind: str
    a: str
    b: str
    label: str


class Judge:
    """Decides as the service would: neighbours by cosine, the lexicon's words embedded once."""

    def __init__(self, surfaces: Iterable[str], lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._surfaces = tuple(dict.fromkeys(surfaces))
        encoder = BuiltinEncoder()
        self._matrix: Matrix = encoder.encode([fold(surface) for surface in self._surfaces])
        self._words: Matrix = encoder.encode([fold(word) for word in lexicon.words])
        self._row = {surface: row for row, surface in enumerate(self._surfaces)}

    def nearest(self, surface: str, keys: Sequence[str], minimum: float) -> list[str]:
        """The keys whose cosine to ``surface`` is at least ``minimum``."""
        cosines = self._matrix[[self._row[key] for key in keys]] @ self._matrix[self._row[surface]]
        return [keys[int(i)] for i in np.flatnonzero(cosines >= minimum)]

    def decide(
        self,
        surface: str,
        keys: Sequence[str],
        aliases: Mapping[str, tuple[str, ...]] | None = None,
        lexicon: Lexicon | None = None,
    ) -> MergeInto | Create:
        """What becomes of ``surface`` when ``keys`` are the store's keys (their ids are their concepts)."""
        known = self._lexicon if lexicon is None else lexicon
        query = self._matrix[self._row[surface]]
        rows = [self._row[key] for key in keys if key != surface]
        cosines = self._matrix[rows] @ query
        order = np.argsort(-cosines, kind="stable")[:_NEAREST]
        names = [(self._surfaces[rows[i]], float(cosines[i])) for i in order]
        neighbours = [
            Neighbour(name, name, () if aliases is None else aliases[name], "concept", cosine) for name, cosine in names
        ]
        return decide_merge(
            surface,
            "concept",
            neighbours,
            PROFILES["builtin"],
            known,
            lambda: [
                (word, cosine)
                for word, cosine in zip(self._lexicon.words, map(float, self._words @ query), strict=True)
                if known is self._lexicon or known.group(word) is not None
            ],
            self._mutual(surface, keys),
        )

    def _mutual(self, surface: str, keys: Sequence[str]) -> Callable[[str], bool]:
        def mutual(key_id: str) -> bool:
            target = self._matrix[self._row[key_id]]
            own = float(self._matrix[self._row[surface]] @ target)
            rivals = [self._row[key] for key in keys if key not in {surface, key_id} and crosses_scripts(key, key_id)]
            return not rivals or float((self._matrix[rivals] @ target).max()) <= own

        return mutual


def read_pairs(path: Path) -> list[Pair]:
    """The labelled pairs of a JSON file, or the distinct ones of a table."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return [Pair(row["kind"], row["a"], row["b"], row["label"]) for row in json.loads(text)["key_pairs"]]
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return [Pair(f"own:{kind}", a, b, "distinct") for kind, a, b in rows]


def outcome(decision: MergeInto | Create, key: str) -> str:
    """One of merged, proposed, apart, as ``decision`` treats ``key``."""
    if isinstance(decision, MergeInto):
        return "merged" if decision.key_id == key else "apart"
    return "proposed" if any(near.key_id == key for near in decision.near) else "apart"


_RANK = {"merged": 0, "proposed": 1, "apart": 2}
Table = dict[tuple[str, str], Counter[str]]


def judge_orders(judge: Judge, pairs: Sequence[Pair], keys: Sequence[str] | None) -> Table:
    """Each pair in both orders among ``keys``, or with the other word as the only key; the closer outcome counts."""
    table: Table = defaultdict(Counter)
    for pair in pairs:
        results = []
        for key, surface in ((pair.a, pair.b), (pair.b, pair.a)):
            decision = judge.decide(surface, [key] if keys is None else keys)
            results.append(outcome(decision, key))
            if pair.label != "same" and results[-1] == "merged" and isinstance(decision, MergeInto):
                print(f"  WRONG {pair.kind}: {surface!r} into {key!r} ({decision.reason})")
        table[pair.label, pair.kind][min(results, key=_RANK.__getitem__)] += 1
    return table


def judge_growing(judge: Judge, pairs: Sequence[Pair], surfaces: Sequence[str]) -> Table:
    """All words written in turn into one store; which pairs end in one key."""
    home: dict[str, str] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    for surface in surfaces:
        decision = judge.decide(surface, list(aliases), aliases)
        home[surface] = decision.key_id if isinstance(decision, MergeInto) else surface
        aliases[home[surface]] = (*aliases.get(home[surface], ()), surface)
    table: Table = defaultdict(Counter)
    for pair in pairs:
        merged = home[pair.a] == home[pair.b]
        if merged and pair.label != "same":
            print(f"  WRONG {pair.kind}: {pair.a!r} and {pair.b!r} in {home[pair.a]!r}")
        table[pair.label, pair.kind]["merged" if merged else "apart"] += 1
    return table


def print_table(table: Table) -> int:
    """The confusion table, and how many pairs were merged that must not be."""
    print(f"  {'label':10} {'kind':18} merged proposed apart")
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for (label, kind), counts in sorted(table.items()):
        print(f"  {label:10} {kind:18} {counts['merged']:6} {counts['proposed']:8} {counts['apart']:5}")
        totals[label].update(counts)
    for label, counts in sorted(totals.items()):
        print(f"  {label:10} {'all':18} {counts['merged']:6} {counts['proposed']:8} {counts['apart']:5}")
    return sum(counts["merged"] for label, counts in totals.items() if label != "same")


def judge_files(paths: Sequence[Path]) -> int:
    """Every store's table; the number of wrong merges."""
    pairs = [pair for path in paths for pair in read_pairs(path)]
    surfaces = list(dict.fromkeys(surface for pair in pairs for surface in (pair.a, pair.b)))
    judge = Judge(surfaces, load_lexicon())
    wrong = 0
    for store in ("sparse", "full", "growing"):
        print(f"\n{store} store")
        if store == "growing":
            wrong += print_table(judge_growing(judge, pairs, surfaces))
        else:
            wrong += print_table(judge_orders(judge, pairs, surfaces if store == "full" else None))
    print(f"\n{wrong} wrong merges in {len(pairs)} pairs, {len(surfaces)} words")
    return wrong


def judge_holdout(seed: int = 7) -> int:
    """The rule on the lexicon's words without the lexicon's entry for them; the number of wrong merges in the full store."""
    lexicon = load_lexicon()
    forms = {
        script: [form for form in lexicon.words if scripts(form) == {script} and closed_class(form) is None]
        for script in ("hangul", "latin")
    }
    judge = Judge([*forms["hangul"], *forms["latin"]], Lexicon([]))
    known = Judge([*forms["hangul"], *forms["latin"]], lexicon)
    wrong_full = 0
    for name, hidden in (("full", set(lexicon.groups)), ("sparse", sample(lexicon.groups, seed))):
        unknown = Lexicon(lexicon.forms(group) for group in lexicon.groups if group not in hidden)
        keys = [form for form in forms["latin"] if lexicon.group(form) in hidden]
        counts: Counter[str] = Counter()
        for surface in forms["hangul"]:
            if lexicon.group(surface) not in hidden:
                continue
            if name == "full":
                decisions = [judge.decide(surface, [*keys, *forms["hangul"]])]
            else:
                near = known.nearest(surface, keys, PROFILES["builtin"].key_merge)
                decisions = [known.decide(surface, [key], lexicon=unknown) for key in near]
            for decision in decisions:
                if isinstance(decision, MergeInto):
                    right = lexicon.group(decision.key_id) == lexicon.group(surface)
                    counts["right" if right else "wrong"] += 1
                    if not right:
                        print(f"  WRONG {surface!r} into {decision.key_id!r}")
            counts["words"] += 1
        print(f"{name} store without the entries: {dict(counts)} against {len(keys)} keys")
        wrong_full += counts["wrong"] if name == "full" else 0
    return wrong_full


def sample(groups: Sequence[str], seed: int) -> set[str]:
    """A repeatable half of the groups."""
    return set(Random(seed).sample(list(groups), len(groups) // 2))


def main() -> int:
    """Print what was asked for; 1 when a wrong merge happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pairs", type=Path, nargs="*")
    parser.add_argument("--holdout", action="store_true")
    arguments = parser.parse_args()
    if arguments.holdout:
        return 1 if judge_holdout() else 0
    files = dict.fromkeys([*arguments.pairs, Path(__file__).with_name("distinct_pairs.tsv")])
    return 1 if judge_files(list(files)) else 0


if __name__ == "__main__":
    sys.exit(main())
