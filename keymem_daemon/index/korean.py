"""Korean morphemes, without ever stopping the daemon to get them.

Kiwi takes half a second or more to load, holds the interpreter lock for nearly all of it, and keeps 330 MB. So it runs in a
process of its own, started when the first Hangul text is met; until it answers, and whenever it does not, `analyse` returns
``None`` at once and the tokenizer falls back on a closed list of particles. Where no process can be started, Kiwi is loaded
here, on a thread.

Kiwi is given no user words: what it answers must depend on the text alone, or an index updated step by step would differ from
one built at once. The multi-word dictionary is left out because its morphemes may span two words.
"""

from __future__ import annotations

import json
import re
import selectors
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, Protocol

State = Literal["unloaded", "loading", "ready", "failed", "closed"]

_ANSWER_S: Final = 3.0
_LOAD_S: Final = 120.0
_CACHED_TEXTS: Final = 512
_CACHED_CHARACTERS: Final = 600
_ATTEMPTS: Final = 3
_CHARACTERS_AT_ONCE: Final = 8_000
# Kiwi's search is quadratic in an unbroken run of syllables: a run this long is no word, and is hidden from it.
LONGEST_RUN: Final = 48
_UNBROKEN: Final = re.compile(rf"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]{{{LONGEST_RUN + 1},}}")


class Morpheme(NamedTuple):
    """One morpheme: dictionary form (verbs with 다), part of speech without its suffix, and its place in the text (characters)."""

    form: str
    tag: str
    start: int
    length: int


class Engine(Protocol):
    """Something that analyses texts: blocking; raises `OSError` or `ValueError` when it cannot."""

    def analyse(self, texts: Sequence[str]) -> list[list[Morpheme]]:
        """The morphemes of each text."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class KiwiHere:
    """Kiwi in this process. Building one blocks for a second and holds the interpreter lock."""

    def __init__(self) -> None:
        from kiwipiepy import Kiwi  # noqa: PLC0415 - an English user never pays for it

        self._kiwi = Kiwi(num_workers=1, load_typo_dict=False, load_multi_dict=False)
        self._kiwi.tokenize("가")

    def analyse(self, texts: Sequence[str]) -> list[list[Morpheme]]:
        """The morphemes of each text."""
        return [
            [
                Morpheme(token.lemma, str(token.tag).partition("-")[0], token.start, token.len)
                for token in self._kiwi.tokenize(text)
            ]
            for text in texts
        ]

    def close(self) -> None:
        """Nothing to let go of."""


class ProcessNotStartedError(OSError):
    """The system started no child process."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"no process for the Korean analyser: {cause}")


class KiwiApart:
    """Kiwi in a child process that answers lines of JSON and ends when its standard input does."""

    def __init__(self) -> None:
        # -P: a module that lies in the current directory must not be imported.
        command = [sys.executable, "-P", "-m", "keymem_daemon.index.korean_worker"]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command, stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True
            )
        except OSError as error:
            raise ProcessNotStartedError(error) from error
        try:
            self._exchange(["가"], _LOAD_S)
        except (OSError, ValueError):
            self.close()
            raise

    def analyse(self, texts: Sequence[str]) -> list[list[Morpheme]]:
        """The morphemes of each text."""
        return self._exchange(texts, _ANSWER_S)

    def _exchange(self, texts: Sequence[str], seconds: float) -> list[list[Morpheme]]:
        writer, reader = self._process.stdin, self._process.stdout
        if writer is None or reader is None:
            raise OSError("the Korean analyser has no pipes")
        writer.write(json.dumps(list(texts)).encode("ascii") + b"\n")
        writer.flush()
        # The child answers one line to one line, so what is ready to read is this answer's beginning.
        with selectors.DefaultSelector() as selector:
            selector.register(reader, selectors.EVENT_READ)
            if not selector.select(seconds):
                raise TimeoutError("the Korean analyser did not answer")
        line = reader.readline()
        if not line:
            raise OSError("the Korean analyser ended")
        answer = json.loads(line)
        return [[Morpheme(form, tag, start, length) for form, tag, start, length in morphemes] for morphemes in answer]

    def kill(self) -> None:
        """End the child as the system would."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the child, wait for it, and let go of its pipes."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


def start_engine() -> Engine:
    """Kiwi in a process of its own, or here where none can be started.

    A process that starts and then fails is not tried again in here: what ended the child would end the daemon.
    """
    # Only sockets can be waited for on Windows.
    if sys.platform == "win32":
        return KiwiHere()
    try:
        return KiwiApart()
    except ProcessNotStartedError:
        return KiwiHere()


class KoreanAnalyzer:
    """Kiwi's answers when there are any: loads in the background when first asked, never waits for loading. Thread-safe."""

    def __init__(self, engine: Callable[[], Engine] = start_engine) -> None:
        self._start_engine = engine
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._state: State = "unloaded"
        self._failure: str | None = None
        self._attempts = 0
        self._closed = False
        self._listeners: list[Callable[[], None]] = []
        self._cache: OrderedDict[str, list[Morpheme]] = OrderedDict()

    @property
    def state(self) -> State:
        """Where it stands; ``failed`` and ``closed`` are final."""
        return self._state

    @property
    def failure(self) -> str | None:
        """Why the last attempt failed, for `status`."""
        return self._failure

    @property
    def ready(self) -> bool:
        """Whether `analyse` will answer."""
        return self._state == "ready"

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call this each time the analyser becomes ready, on the thread that loaded it, and at once if it is ready now.

        A daemon has its loop re-analyse the stale documents then.
        """
        with self._lock:
            self._listeners.append(call)
            ready = self._state == "ready"
        if ready:
            call()

    def load(self) -> None:
        """Begin to load, and return at once. Does nothing when it is loaded, loading or beyond hope."""
        with self._lock:
            if self._state != "unloaded" or self._closed:
                return
            self._state = "loading"
            self._attempts += 1
        threading.Thread(target=self._load, name="korean", daemon=True).start()

    def _load(self) -> None:
        try:
            engine = self._start_engine()
        except Exception as error:  # noqa: BLE001 - a missing or broken optional model must not take a thread down silently
            with self._lock:
                self._give_up(f"{type(error).__name__}: {error}")
            return
        with self._lock:
            if self._closed:
                engine.close()
                return
            self._engine = engine
            self._state = "ready"
            listeners = list(self._listeners)
        for call in listeners:
            call()

    def _give_up(self, reason: str) -> None:
        self._failure = reason
        self._state = "failed" if self._attempts >= _ATTEMPTS else "unloaded"

    def analyse(self, texts: Sequence[str]) -> list[list[Morpheme]] | None:
        """The morphemes of each text (NFC, no lone surrogates), or ``None`` when there is no answer now; then loading has begun.

        Blocks for about 0.3 ms a sentence.
        """
        if self._state != "ready":
            self.load()
            return None
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._cache]
            fresh: dict[str, list[Morpheme]] = {}
            if missing:
                if self._engine is None:
                    return None
                try:
                    for part in _portions(missing):
                        hidden = [_hide_long_runs(text) for text in part]
                        fresh.update(zip(part, self._engine.analyse(hidden), strict=True))
                except (OSError, ValueError) as error:
                    self._engine.close()
                    self._engine = None
                    self._give_up(f"{type(error).__name__}: {error}")
                    return None
            answers = [fresh[text] if text in fresh else self._cache[text] for text in texts]
            self._remember(fresh)
            return answers

    def _remember(self, fresh: dict[str, list[Morpheme]]) -> None:
        for text, morphemes in fresh.items():
            if len(text) <= _CACHED_CHARACTERS:
                self._cache[text] = morphemes
        while len(self._cache) > _CACHED_TEXTS:
            self._cache.popitem(last=False)

    def close(self) -> None:
        """End the child process, if there is one; `analyse` answers ``None`` from now on."""
        with self._lock:
            self._closed = True
            if self._engine is not None:
                self._engine.close()
            self._engine = None
            self._state = "closed"


def _portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """``texts`` in order, in lists that one answer covers well within its time."""
    portion: list[str] = []
    for text in texts:
        portion.append(text)
        if sum(map(len, portion)) >= _CHARACTERS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def _hide_long_runs(text: str) -> str:
    return _UNBROKEN.sub(lambda run: " " * len(run.group()), text)
