"""recall: where to start walking. Keys near the query, at most one preview, and an honest miss.

The keys are what the query names, what it means, and the keys of memories that match in words. They are ordered by the
memory they lead to: the key of the best supported memory comes first, the more specific one of two before the other, so that a
generic key with many members never hides the key of the memory that answers. The preview is that memory.

What is late is left out, and the answer marked ``partial``. Nothing changes, with one exception: a context that equals the previewed memory's whole text is the user restating the fact.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from keymem_daemon.core.decide.confirm import decide_confirm
from keymem_daemon.core.decide.limits import checked_text
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.freshness import ranking_factor
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Key, Memory, Scope
from keymem_daemon.core.rank.first import FIRST
from keymem_daemon.core.rank.keymatch import MatchType, top
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.core.text import fold, normalized
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.deadline import Deadline
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.explain import explained_preview
from keymem_daemon.service.first import learned_first
from keymem_daemon.service.gate import gate_case
from keymem_daemon.service.recent import RecentRecall
from keymem_daemon.service.retrieve import checked_query, checked_range
from keymem_daemon.service.signals import FirstStage, Signals, first_stage, read_query
from keymem_daemon.service.views import key_facts, key_view, score, validity_view

TOP_K: Final = 8
TOP_K_MAX: Final = 20
MAX_CHARS: Final = 1_500
MAX_CHARS_LOW: Final = 80
MAX_CHARS_HIGH: Final = 6_000
RESULT_BYTES: Final = 7_600
CONNECTED_KEYS: Final = 12
NEAREST_KEYS: Final = 5
CLOSEST_MEMORIES: Final = 3
QUOTED_CHARS: Final = 60
QUERY_ECHO: Final = 400
SUPPORT_MEMBERS: Final = 500
QUERY_TERMS: Final = 32

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A key with its relevance to the query and the best memory it leads to."""

    key_id: str
    relevance: float
    match_type: MatchType
    support: float
    memory_id: str
    cluster_size: int = 1


async def recall(
    engine: Engine,
    caller: Caller,
    query: str,
    context: str | None = None,
    namespace: str | None = None,
    top_k: int = TOP_K,
    explain: bool = False,
    max_chars: int | None = None,
) -> Result:
    """Keys and at most one preview for ``query``; ``context``, the raw utterance, ranks the preview when it is given.

    Raises `InvalidArgument` for a blank query, ``top_k`` outside 1–20 or ``max_chars`` outside 80–6,000.
    """
    question = checked_query(query)
    checked_range("top_k", top_k, 1, TOP_K_MAX)
    chars = checked_range("max_chars", MAX_CHARS if max_chars is None else max_chars, MAX_CHARS_LOW, MAX_CHARS_HIGH)
    utterance = checked_text("context", context).strip() if context is not None else ""
    scope = caller.scope(namespace)
    now = engine.now()
    graph, weights = engine.graph, engine.weights
    count = graph.active_count(scope)
    result: Result = {"status": "found", "query": _echoed(query), "namespace": caller.described(namespace), "keys": [], "memories": []}
    result["searched"] = {"namespaces": caller.searched(namespace), "memory_count": count}
    if explain:
        result["namespace_memory_count"] = count
    if not count:
        return {**result, "status": "empty_namespace", "nearest_keys": [], "next_step": _EMPTY}
    deadline = engine.deadline()
    # What was said first: it is the longer one, and has most of what was asked in it.
    said = await read_query(engine, utterance or question, scope, weights, deadline)
    asked = said if not utterance or utterance == question else await read_query(engine, question, scope, weights, deadline)
    # One memory is shown: what the best one would give to those beside it only brings them nearer to its place.
    stage = await first_stage(engine, said, scope, replace(weights, lead_gift=0.0), deadline)
    result["semantic"] = said.semantic
    scored = {m: value * ranking_factor(graph.memories[m], now, engine.settings.half_lives) for m, value in stage.scores.items()}
    places = await learned_first(engine, said, stage, [(m, scored[m]) for m in top(scored, FIRST)], weights, deadline)
    scored |= dict(places)
    # While vectors were awaited a memory may have gone, or have been superseded.
    scored = {m: value for m, value in scored.items() if graph.in_scope(m, scope)}
    candidates = _candidates(engine, asked, stage, scored, scope, weights)
    # Without a sentence to judge by the words decide alone, as they do while the model is warming.
    judged = replace(said, direction=None) if deadline.skipped and not stage.cosines else said
    case = gate_case(engine, asked, judged, stage, scope, caller.scope(None), weights)
    if not candidates or not case.passes(engine.profile.gate_floor, weights):
        nearest = await deadline.within("nearest keys", lambda: _nearest(engine, asked, said, scored, scope)) or []
        _note_recall(engine, caller, question, asked, now, nearest)
        return {**result, "status": "no_match", "nearest_keys": nearest, "next_step": _missed(nearest), **_late(deadline, explain)}
    asked_for = frozenset(key_id for key_id, match in asked.named.items() if match.surface == fold(question))
    ordered = _ordered(graph, candidates, asked_for, scope, engine.settings.key_hub_min_links)
    best, shown = ordered[0], ordered[:top_k]
    memory = graph.memories[best.memory_id]
    result["keys"] = [_key_result(engine, candidate, scope) for candidate in shown]
    confirmed = await _confirmed_by_restating(engine, caller, memory, utterance, now)
    preview = await _preview(engine, confirmed or memory, best, said, stage, scope, now, deadline)
    if confirmed is not None:
        preview["auto_confirmed"] = True
    result["memories"] = [preview]
    result.update(_late(deadline, explain))
    if explain:
        result["explain"] = {
            **explained_preview(engine, memory, best.key_id, best.support, scored, stage, said, scope, now),
            "query_terms": [token.term for token in said.tokens[:QUERY_TERMS]],
        }
    _note_recall(engine, caller, question, asked, now, ())
    return _fitted(result, preview, chars)


def _late(deadline: Deadline, explain: bool) -> Result:
    """What the answer says when something was left out for being late."""
    if not deadline.skipped:
        return {}
    return {"partial": True, "skipped": list(deadline.skipped)} if explain else {"partial": True}


_EMPTY = "Nothing is stored in this namespace yet. Answer without memory, and remember durable facts at the end of the turn."
_MISS_ELSE = " if one fits; otherwise say that you do not know."
_MISS = f"Nothing stored answers this. Recall once more with a synonym{_MISS_ELSE}"


def _candidates(
    engine: Engine, asked: Signals, stage: FirstStage, scored: Mapping[str, float], scope: Scope, weights: Weights
) -> list[Candidate]:
    """Every key that the query or the best memories lead to, with the best memory behind it."""
    graph = engine.graph
    relevance: dict[str, tuple[float, MatchType]] = {}
    for memory_id in top(stage.lexical, weights.sentence_pool):
        bounded = stage.lexical[memory_id] / (1 + stage.lexical[memory_id])
        for key_id in graph.key_ids_of(memory_id):
            if bounded > relevance.get(key_id, (0.0, "lexical"))[0]:
                relevance[key_id] = (bounded, "lexical")
    for key_id, cosine in asked.meant.items():
        if cosine >= relevance.get(key_id, (0.0, "lexical"))[0]:
            relevance[key_id] = (cosine, "semantic")
    for key_id, match in asked.named.items():
        if match.weight >= relevance.get(key_id, (0.0, "lexical"))[0]:
            relevance[key_id] = (match.weight, match.match_type)
    # A literal entity hit counts 1, and a half inside a longer one; what a phrase means never outranks what it says.
    found: list[Candidate] = []
    for key_id, (value, match_type) in relevance.items():
        member = _best_member(graph, key_id, scored, scope, weights)
        if member is not None:
            memory_id, support = member
            found.append(Candidate(key_id, min(1.0, value), match_type, support, memory_id))
    return found


def _best_member(
    graph: Graph, key_id: str, scored: Mapping[str, float], scope: Scope, weights: Weights
) -> tuple[str, float] | None:
    """The key's best memory of the scope by text, use and factors; of those that were not found at all the newest.

    Use counts as the fourth root of the link's weight (0.56 to 1.32), since what was often read for other questions must not
    outweigh what answers this one. Costs the members or what was found, whichever are fewer; a hub of more than 500 memories must
    have one that was found.
    """
    members = graph.members(key_id)
    if len(members) > len(scored):
        links = [link for m in scored if (link := members.get(m)) is not None]
    else:
        links = [link for m, link in members.items() if m in scored]
    if not links and graph.memory_count(key_id, scope) <= SUPPORT_MEMBERS:
        links = list(graph.active_members(key_id, scope))
    ranked = [(scored.get(link.memory_id, 0.0) * link.weight**weights.link_use, graph.memories[link.memory_id].created_at, link.memory_id) for link in links]
    if not ranked:
        return None
    support, _, memory_id = max(ranked)
    return memory_id, support


def _ordered(
    graph: Graph, candidates: Iterable[Candidate], asked_for: Collection[str], scope: Scope, hub_min_links: int
) -> list[Candidate]:
    """Strongest first; keys that surface only through one memory, and lead nowhere else, are one cluster.

    ``asked_for`` are keys that are the whole query: whoever says nothing but a key's name means that key.
    """

    def strength(c: Candidate) -> tuple[bool, float, bool, float, bool, float, str]:
        members = graph.memory_count(c.key_id, scope)
        return (c.key_id not in asked_for, -c.support, members >= hub_min_links, -c.relevance, c.match_type == "lexical", members, c.key_id)

    ordered = sorted(candidates, key=strength)
    collapsed: dict[str, list[Candidate]] = {}
    for candidate in ordered:
        alone = candidate.match_type == "lexical" and graph.memory_count(candidate.key_id, scope) == 1
        collapsed.setdefault(f"memory {candidate.memory_id}" if alone else candidate.key_id, []).append(candidate)
    return [
        Candidate(c.key_id, c.relevance, c.match_type, c.support, c.memory_id, len(cluster))
        for cluster in collapsed.values()
        for c in cluster[:1]
    ]


async def _nearest(engine: Engine, asked: Signals, said: Signals, scored: Mapping[str, float], scope: Scope) -> list[Result]:
    """Keys to try next: of each of the memories that came closest the key most like what was said, then keys nearest in meaning.

    The first leads to the memory that would have been shown, had there been evidence enough. ``similarity`` is the key's own.
    """
    graph = engine.graph
    similar = {**said.almost, **said.meant, **asked.almost, **asked.meant}
    if asked.direction is not None and engine.encoder is engine.light:
        for surface, cosine in engine.catalog.keys.search(asked.direction, 8 * NEAREST_KEYS, 0.2)[0]:
            key_id = graph.key_id_of_folded(surface)
            if key_id is not None:
                similar[key_id] = max(cosine, similar.get(key_id, 0.0))
    closest = [graph.key_ids_of(memory_id) for memory_id in top(scored, CLOSEST_MEMORIES)]
    keys = [graph.keys[key_id] for key_id in dict.fromkeys(key_id for own in closest for key_id in own)]
    for key_id, cosine in (await _relevances(engine, keys, said)).items():
        similar[key_id] = max(cosine, similar.get(key_id, 0.0))
    counts = {key_id: graph.memory_count(key_id, scope) for key_id in [*similar, *(key.id for key in keys)]}
    reachable = {key_id: value for key_id, value in similar.items() if counts[key_id]}

    def likeness(key_id: str) -> tuple[float, int, str]:
        return (-similar.get(key_id, 0.0), counts[key_id], key_id)

    leading = [min(there, key=likeness) for own in closest if (there := [key_id for key_id in own if counts[key_id]])]
    hub = engine.settings.key_hub_min_links
    return [
        {**key_facts(graph, graph.keys[key_id], scope, hub), "similarity": score(similar.get(key_id, 0.0))}
        for key_id in list(dict.fromkeys([*leading, *top(reachable, NEAREST_KEYS)]))[:NEAREST_KEYS]
    ]


def _missed(nearest: Sequence[Result]) -> str:
    """What to do after a miss."""
    if not nearest:
        return _MISS
    return f"Nothing stored answers this. Recall once more with {_quoted(nearest[0]['concept'])}, another of nearest_keys or a synonym{_MISS_ELSE}"


def _quoted(concept: str) -> str:
    return json.dumps(concept if len(concept) <= QUOTED_CHARS else concept[: QUOTED_CHARS - 1] + "…", ensure_ascii=False)


def _key_result(engine: Engine, candidate: Candidate, scope: Scope) -> Result:
    key: Key = engine.graph.keys[candidate.key_id]
    return {
        **key_view(engine.graph, key, scope, engine.settings.key_hub_min_links),
        "score": score(candidate.relevance),
        "score_kind": "key_relevance",
        "match_type": candidate.match_type,
        "cluster_size": candidate.cluster_size,
    }


async def _preview(
    engine: Engine, memory: Memory, best: Candidate, said: Signals, stage: FirstStage, scope: Scope, now: float, deadline: Deadline
) -> Result:
    graph = engine.graph
    linked = [graph.keys[link.key_id] for link in graph.links_of(memory.id)]
    relevances = await deadline.within("key relevances", lambda: _relevances(engine, linked, said)) or {}
    hub = engine.settings.key_hub_min_links
    connected = [{**key_facts(graph, key, scope, hub), "relevance": score(relevances.get(key.id, 0.0))} for key in linked]
    connected.sort(key=lambda view: (-view["relevance"], view["concept"]))
    return {
        "id": memory.id,
        "content": memory.content,
        "namespace": memory.namespace,
        "depth": score(memory.depth),
        "matched_key": {"key_id": best.key_id, "concept": graph.name_in(best.key_id, scope)},
        "validity": validity_view(memory, now, engine.settings.half_lives),
        "content_relevance": score(stage.scores.get(memory.id, 0.0)),
        "connected_keys": connected[:CONNECTED_KEYS],
    }


async def _relevances(engine: Engine, keys: Sequence[Key], said: Signals) -> dict[str, float]:
    """Cosine of each key's concept to what was said; 0 while the model is warming."""
    if said.direction is None:
        return {}
    if engine.encoder is engine.light:
        names = [fold(key.concept) for key in keys]
        return dict(zip((key.id for key in keys), map(float, engine.catalog.keys.similarities(names, said.direction)), strict=True))
    vectors = await engine.light.encode([key.concept for key in keys])
    return dict(zip((key.id for key in keys), map(float, vectors @ said.direction), strict=True))


async def _confirmed_by_restating(engine: Engine, caller: Caller, memory: Memory, utterance: str, now: float) -> Memory | None:
    """The memory as confirmed, when the context is its whole text; confirmed once a request."""
    if not utterance or normalized(utterance) != normalized(memory.content):
        return None

    def decide(plan: Plan) -> Result:
        decide_confirm(plan, memory.id, now, None)
        return {"confirmed": memory.id}

    await engine.writer.write("confirm", caller.actor, caller.request_id, decide, note="user: restated in recall")
    return engine.graph.memory(memory.id)


def _note_recall(engine: Engine, caller: Caller, question: str, asked: Signals, now: float, nearest: Sequence[Result]) -> None:
    """What learning may follow: keys matched by meaning only, or almost; after a miss also the ``nearest`` that were offered instead."""
    if not engine.settings.autokey:
        return
    floor = engine.settings.autokey_confirm_floor
    graph = engine.graph
    concepts = [view for view in nearest if (key := graph.key(view["key_id"])) is not None and key.key_type == "concept"]
    offered = {view["key_id"]: view["similarity"] for view in concepts}
    reached = {**offered, **asked.almost, **asked.meant}
    weak = {key_id: cosine for key_id, cosine in reached.items() if cosine >= floor and key_id not in asked.named}
    learned = frozenset(
        key_id
        for key_id, match in asked.named.items()
        if (key := graph.key(key_id)) is not None and any(fold(alias.alias) == match.surface for alias in key.learned)
    )
    if weak or learned:
        engine.recent.note(RecentRecall(now, caller.actor.session, fold(question), weak, learned))


def _echoed(query: str) -> str:
    return query if len(query) <= QUERY_ECHO else query[: QUERY_ECHO - 1] + "…"


def _fitted(result: Result, preview: Result, chars: int) -> Result:
    """The result within its size: the content is cut to ``chars``, then further, then trailing keys go."""
    if len(preview["content"]) > chars:
        preview["content"] = preview["content"][: chars - 1].rstrip() + "…"
        preview["content_truncated"] = True
    while (excess := _size(result) - RESULT_BYTES) > 0:
        content = preview["content"]
        if len(content) > MAX_CHARS_LOW:
            keep = max(MAX_CHARS_LOW, min(len(content) - 1, len(content) - max(1, excess // 4) - 1))
            preview["content"] = content[:keep].rstrip() + "…" if keep > 1 else content
            preview["content_truncated"] = True
            if len(preview["content"]) < len(content):
                continue
        if len(preview["connected_keys"]) > 1:
            preview["connected_keys"].pop()
        elif len(result["keys"]) > 1:
            result["keys"].pop()
        else:
            break
    return result


def _size(result: Result) -> int:
    return len(json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass"))
