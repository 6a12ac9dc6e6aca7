"""What can go wrong that a caller can do something about: one class a case, its message built here from typed parts.

    KeymemError            code             whose turn it is
      InvalidArgument      invalid_argument the caller's: names the argument and what was expected
      NotFound             not_found        the caller's: names the thing and where to look
      Superseded           superseded       the caller's: names the successor
      TooLarge             too_large        the caller's: names the limit and the actual size
      ReadOnly             read_only        the operator's
      StorageFailed        storage          the operator's: nothing was changed
      Unavailable          unavailable      nobody's: try again

Everything else is a defect and stays a builtin exception.
"""

from __future__ import annotations

from typing import ClassVar, Literal

ErrorCode = Literal["invalid_argument", "not_found", "superseded", "too_large", "read_only", "storage", "unavailable"]


class KeymemError(Exception):
    """Base of the errors that reach a caller: ``code``, a message and a hint, the next step."""

    code: ClassVar[ErrorCode]

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidArgument(KeymemError):
    """An argument is not what the tool takes."""

    code = "invalid_argument"

    def __init__(self, argument: str, expected: str, actual: str | None = None, hint: str | None = None) -> None:
        got = "" if actual is None else f", got {actual}"
        super().__init__(f"{argument}: expected {expected}{got}", hint or f"Call again with {argument} as described. Nothing was changed.")
        self.argument = argument


class NotFound(KeymemError):
    """An id names nothing that the caller may see."""

    code = "not_found"

    def __init__(self, argument: str, kind: str, identifier: str, hint: str) -> None:
        super().__init__(f"{argument}: there is no {kind} {shortened(identifier)!r}", hint)


class Superseded(KeymemError):
    """The memory was corrected; its successor is the current truth."""

    code = "superseded"

    def __init__(self, argument: str, memory_id: str, successor: str, *, successor_exists: bool) -> None:
        hint = (
            f"Use memory_id {successor}, its successor."
            if successor_exists
            else "Its successor was forgotten; recall the topic, or remember it anew."
        )
        super().__init__(f"{argument}: memory {memory_id} was superseded by {successor}", hint)
        self.successor = successor


class TooLarge(KeymemError):
    """More than the documented limit."""

    code = "too_large"

    def __init__(self, argument: str, limit: int, actual: int, unit: str) -> None:
        super().__init__(
            f"{argument}: at most {limit:,} {unit}, got {actual:,}", "Split it into several smaller ones. Nothing was changed."
        )


class ReadOnly(KeymemError):
    """The store can be read and not written."""

    code = "read_only"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the store cannot be written: {reason}", "Run `keymemd status`; it names the command that mends this.")


class StorageFailed(KeymemError):
    """The disk refused. The transaction was rolled back."""

    code = "storage"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the store refused the write: {reason}", "Nothing was changed. Check free space and `keymemd status`, then try again.")


class Unavailable(KeymemError):
    """Not now."""

    code = "unavailable"

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)


def shortened(text: str, limit: int = 80) -> str:
    """``text`` on one line of at most ``limit`` characters, safe to print: what an error may quote of its input."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
