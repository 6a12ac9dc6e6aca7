"""The table of verbs: what each is called, takes, returns, promises and does.

One table serves the MCP tools, the HTTP paths, their schemas and `docs/tools.md`. A description says verb and resource, when
to use it, when not and what instead, what it changes and what comes back. Models read all of them on every turn: names,
descriptions and input schemas of the ten tools stay within 9,000 characters (a test counts).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from keymem_daemon.api import arguments, results, verbs
from keymem_daemon.api.arguments import Arguments
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine

__all__ = ["COMPAT_TOOLS", "HTTP_VERBS", "INJECT", "TOOLS", "Surface", "Verb", "offered"]

Handler = Callable[[Engine, Caller, Any], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Surface:
    """What the settings ask the server to offer."""

    hook_installed: bool = False
    compat_tools: bool = False
    direct_recall: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. ``writes`` orders it within its session and lets it finish when the client is gone.

    ``read_only``, ``destructive`` and ``idempotent`` are the annotations of the tool. ``always_loaded`` asks Claude Code to
    show the tool from the first turn. ``whole`` exempts the result from the size limit. ``paged`` names the list that is a page.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type
    handler: Handler
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    always_loaded: bool = False
    writes: bool = False
    whole: bool = False
    paged: str | None = None


TOOLS: Final[tuple[Verb, ...]] = (
    Verb(
        "recall",
        "Recall from memory",
        "Find memories by association. Use before your first reply, when the topic shifts, and for each missing fact. Not for "
        "surveying a namespace (browse_keys) or for opening a known id (read_memory). Changes nothing; only when context "
        "restates a memory word for word is that memory confirmed. Returns status, keys by relevance and at most one preview "
        "with its connected keys; on no_match nearest_keys and a next_step. Next: read_key or read_memory.",
        arguments.Recall,
        results.RecallResult,
        verbs.recall,
        read_only=True,
        idempotent=True,
        always_loaded=True,
    ),
    Verb(
        "browse_keys",
        "Browse the keys of a namespace",
        "List the keys of one namespace, hubs first. Use to learn what is known at all, or before choosing keys for new "
        "memories. To find something in particular use recall. Changes nothing. Returns keys with memory counts, totals and "
        "next_offset.",
        arguments.Browse,
        results.BrowseResult,
        verbs.browse_keys,
        read_only=True,
        idempotent=True,
        paged="keys",
    ),
    Verb(
        "read_key",
        "List the memories under a key",
        "List the memories under one key as ranked handles, without content. Use to follow a key that recall or read_memory "
        "showed. For the text call read_memory with the handle's id. Changes nothing. Returns key, memories (id, score, "
        "validity), total and next_offset.",
        arguments.ReadKey,
        results.ReadKeyResult,
        verbs.read_key,
        read_only=True,
        idempotent=True,
        paged="memories",
        always_loaded=True,
    ),
    Verb(
        "read_memory",
        "Read a memory",
        "Read one memory in full with every key it hangs on. Use for a handle of read_key, a cut preview, or to find the next "
        "key to follow. Pass via_key_id when you came through a key: that link is strengthened and its vocabulary learned. "
        "Reading does not confirm (confirm_memory does). Returns memory, validity, keys.",
        arguments.ReadMemory,
        results.ReadMemoryResult,
        verbs.read_memory,
        always_loaded=True,
        whole=True,
    ),
    Verb(
        "confirm_memory",
        "Confirm a memory",
        "Record that a memory proved true: it becomes fresh again and deeper. Only with evidence: the user said so, an "
        "authoritative source shows it, or you observed it; having read or recalled it is none. If it is wrong use correct. "
        "Returns the new validity.",
        arguments.Confirm,
        results.ConfirmResult,
        verbs.confirm_memory,
        writes=True,
    ),
    Verb(
        "remember",
        "Remember a fact",
        "Save one durable, self-contained fact under 3-6 diverse atomic keys (both languages when the user is bilingual). Use "
        "silently at the end of a turn for what matters in other conversations. Not for what the code already says, never "
        "for credentials; a fact that changed goes to correct. The same text again is not stored twice. Returns saved (the "
        "id), deduplicated, and hints about the keys.",
        arguments.Remember,
        results.RememberResult,
        verbs.remember,
        idempotent=True,
        always_loaded=True,
        writes=True,
    ),
    Verb(
        "remember_batch",
        "Remember several facts",
        "Save up to 200 facts at once, each as remember would. For a single fact use remember. A bad item is reported in its "
        "place and does not stop the others. Returns results, one an item, in order.",
        arguments.RememberBatch,
        results.BatchResult,
        verbs.remember_batch,
        idempotent=True,
        writes=True,
    ),
    Verb(
        "correct",
        "Correct a memory",
        "Replace a memory whose fact has changed or was wrong. The new one inherits namespace, keys and links unless given; "
        "the old one stays readable by id but is never recalled again. To remove something for good use forget, to add "
        "another fact remember. Returns new_id, superseded, and a note naming inherited keys.",
        arguments.Correct,
        results.CorrectResult,
        verbs.correct,
        always_loaded=True,
        writes=True,
    ),
    Verb(
        "dismiss",
        "Dismiss a memory under a key",
        "Say that a memory did not belong under the key it was reached through: halves that one link and drops what was being "
        "learned from it. The memory stays, also under its other keys; to delete it use forget. Returns link_weight and "
        "cancelled_learning.",
        arguments.Dismiss,
        results.DismissResult,
        verbs.dismiss,
        writes=True,
    ),
    Verb(
        "forget",
        "Forget a memory for good",
        "Delete a memory and every trace of its text, history included. Cannot be undone: only when the user asks for it. For "
        "a changed fact use correct, for a misplaced one dismiss. Returns deleted.",
        arguments.Forget,
        results.ForgetResult,
        verbs.forget,
        destructive=True,
        idempotent=True,
        writes=True,
    ),
)

_RECALL_MEMORIES: Final = Verb(
    "recall_memories",
    "Search memories directly",
    "Find memories in one call, ranked, with their content, following shared keys for some hops. Use when one answer is enough; "
    "to explore step by step use recall. Returns memories with id, score, hop, path and content.",
    arguments.RecallMemories,
    results.RetrieveResult,
    verbs.recall_memories,
)

COMPAT_TOOLS: Final[tuple[Verb, ...]] = (
    _RECALL_MEMORIES,
    Verb(
        "list_memories",
        "List memories",
        "List memories, newest first, a page at a time. To find something use recall. Changes nothing.",
        arguments.ListMemories,
        results.ListResult,
        verbs.list_memories,
        read_only=True,
        idempotent=True,
        paged="memories",
    ),
    Verb(
        "memory_stats",
        "Memory statistics",
        "Count keys, memories and links. Changes nothing.",
        arguments.Scoped,
        results.Unlisted,
        verbs.stats,
        read_only=True,
        idempotent=True,
    ),
    Verb(
        "cleanup_expired",
        "Delete expired memories",
        "Delete the memories whose time to live has passed; this also happens by itself. Returns how many.",
        arguments.Empty,
        results.Unlisted,
        verbs.cleanup_expired,
        destructive=True,
        idempotent=True,
        writes=True,
    ),
)

_BY_NAME: Final = {verb.name: verb for verb in TOOLS}

INJECT: Final = Verb(
    "inject",
    "Memories for a prompt",
    "For the prompt hook: at most a few memories that clearly answer the prompt, or none. Changes nothing.",
    arguments.Inject,
    results.InjectResult,
    verbs.inject,
    read_only=True,
)

HTTP_VERBS: Final[Mapping[str, Verb]] = MappingProxyType(
    {
        "recall": _BY_NAME["recall"],
        "browse_keys": _BY_NAME["browse_keys"],
        "read_key": _BY_NAME["read_key"],
        "read_memory": _BY_NAME["read_memory"],
        "confirm": _BY_NAME["confirm_memory"],
        "remember": _BY_NAME["remember_batch"],
        "correct": _BY_NAME["correct"],
        "dismiss": _BY_NAME["dismiss"],
        "forget": _BY_NAME["forget"],
        "retrieve": Verb(
            "retrieve",
            "Search memories directly",
            "Direct retrieval: ranked memories with content, each with the path of keys that led to it.",
            arguments.Retrieve,
            results.RetrieveResult,
            verbs.retrieve,
        ),
        "list": Verb(
            "list",
            "List memories",
            "Memories, newest first, a page at a time.",
            arguments.ListMemories,
            results.ListResult,
            verbs.list_memories,
            read_only=True,
        ),
        "stats": Verb(
            "stats",
            "Statistics",
            "Counts of keys, memories and links.",
            arguments.Scoped,
            results.Unlisted,
            verbs.stats,
            read_only=True,
        ),
        "history": Verb(
            "history",
            "History",
            "Who changed what and when, newest first, of one memory or key or of everything.",
            arguments.History,
            results.Unlisted,
            verbs.history,
            read_only=True,
        ),
        "show": Verb(
            "show",
            "Show a memory or a key",
            "One memory or key with everything known about it, without counting as an access.",
            arguments.Show,
            results.Unlisted,
            verbs.show,
            read_only=True,
        ),
    }
)
"""The verbs of `POST /api/NAME`. `remember` takes a batch there, as scripts have many."""


def offered(surface: Surface) -> tuple[Verb, ...]:
    """The tools that the server offers."""
    if surface.compat_tools:
        return (*TOOLS, *COMPAT_TOOLS)
    return (*TOOLS, _RECALL_MEMORIES) if surface.direct_recall else TOOLS
