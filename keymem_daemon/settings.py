"""Every option there is, once, as data; and the only place in the daemon that reads the environment.

An option comes from its environment variable, else from `config.toml` in the data directory, else from its default. A
value that cannot be used never stops anything: the default takes its place and a sentence in `Settings.warnings` says so,
which `keymemd status` repeats. An empty value counts as unset. Every `KEYMEM_X` answers to `SUPER_MEMORY_X` as well.

Running this module (`python -m keymem_daemon.settings`) prints `docs/configuration.md`.
"""

from __future__ import annotations

import math
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from keymem_daemon.core.freshness import HalfLives
from keymem_shim import rendezvous

__all__ = ["IGNORED", "OPTIONS", "Option", "Settings", "Source", "current_settings", "load_settings", "reference_page"]

Source = Literal["default", "environment", "config file"]
Backend = Literal["builtin", "local", "openai"]
Reader = Literal["daemon", "shim", "hook"]

PREFIX: Final = "KEYMEM_"
EARLIER_PREFIX: Final = "SUPER_MEMORY_"
CONFIG_FILE: Final = "config.toml"


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of value: what is expected, in words, and the parser, which raises `ValueError`."""

    expected: str
    parse: Callable[[str], object]


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word in rendezvous.TRUE_WORDS:
        return True
    if word in rendezvous.FALSE_WORDS:
        return False
    raise ValueError(text)


def _number(low: float, high: float, *, open_low: bool = False) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if not math.isfinite(value) or not low <= value <= high or (open_low and value == low):
            raise ValueError(text)
        return value

    return parse


def _whole(low: int, high: int) -> Kind:
    def parse(text: str) -> int:
        value = float(text)
        if not math.isfinite(value) or value != int(value) or not low <= value <= high:
            raise ValueError(text)
        return int(value)

    return Kind(f"a whole number from {low:,} to {high:,}", parse)


def _choice(*words: str) -> Kind:
    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(text)
        return word

    return Kind("one of " + ", ".join(words), parse)


def _path(text: str) -> Path:
    if "\0" in text:
        raise ValueError(text)
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - `..` is folded without following links


FLAG: Final = Kind("true or false", _flag)
TEXT: Final = Kind("text", str.strip)
PATH: Final = Kind("a path", _path)
FRACTION: Final = Kind("a number from 0 to 1", _number(0.0, 1.0))
DAYS: Final = Kind("a number of days above 0", _number(0.0, 1e6, open_low=True))
LOGIT: Final = Kind("a number", _number(-1e6, 1e6))
DAY_MS: Final = 86_400_000

_BACKENDS: Final[tuple[Backend, ...]] = ("builtin", "local", "openai")
BACKENDS_THERE: Final[tuple[Backend, ...]] = ("builtin",)
"""The backends that this version has."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. ``variable`` is the environment variable; ``name`` the key in `config.toml` and in `keymemd config`.

    ``reader`` says which program acts on it: what the shim or the hook reads comes from the environment only.
    ``shown`` replaces the default where that is worked out; ``secret`` values are never shown or written to a file.
    ``planned`` options control nothing in this version, and ``planned_values`` are choices that cannot be had in it.
    """

    variable: str
    kind: Kind
    default: object
    help: str
    unit: str = ""
    reader: Reader = "daemon"
    shown: str | None = None
    secret: bool = False
    planned: bool = False
    planned_values: tuple[str, ...] = ()

    def missing(self, value: object) -> str | None:
        """What ``value`` asks for that this version does not have, in words; switching something off asks for nothing."""
        if self.planned and value not in (None, False):
            return f"{self.variable} has no effect: what it controls is not part of this version"
        if value in self.planned_values:
            return f"{self.variable} cannot be {value}: that is not part of this version"
        return None

    @property
    def name(self) -> str:
        """The variable without its prefix, in lower case."""
        return self.variable.removeprefix(PREFIX).lower()

    @property
    def in_config_file(self) -> bool:
        """Whether `config.toml` may set it: not what other programs read, not a secret, not where the file is."""
        return self.reader == "daemon" and not self.secret and self.variable != "KEYMEM_DATA_DIR"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that are looked at, the first that is set wins."""
        if self.variable.startswith(PREFIX):
            return self.variable, EARLIER_PREFIX + self.variable.removeprefix(PREFIX)
        return (self.variable,)


_AS_PROFILE: Final = "as the model's profile"

OPTIONS: Final[tuple[Option, ...]] = (
    # Where and how the daemon runs
    Option("KEYMEM_DATA_DIR", PATH, None, "Directory of the store, the models and the logs.", shown="~/.keymem"),
    Option(
        "KEYMEM_DAEMON_PORT",
        _whole(1, 65_535),
        None,
        "Listen on this TCP port of 127.0.0.1 as well as on the socket; a taken one is replaced.",
        shown="no TCP",
    ),
    Option("KEYMEM_DAEMON_AUTOSTART", FLAG, True, "Whether the shim may start the daemon.", reader="shim"),
    Option(
        "KEYMEM_DAEMON_IDLE_MS",
        _whole(100, 30 * DAY_MS),
        600_000,
        "A daemon that a shim started exits after this long without a session.",
        unit="ms",
    ),
    Option(
        "KEYMEM_SESSION_REAP_GRACE_MS",
        _whole(0, DAY_MS),
        15_000,
        "A session whose client vanished counts for this much longer.",
        unit="ms",
    ),
    Option(
        "KEYMEM_CLEANUP_INTERVAL_MS",
        _whole(1_000, 30 * DAY_MS),
        3_600_000,
        "Time between sweeps of expired memories.",
        unit="ms",
    ),
    Option("KEYMEM_GRAPH_JSON", FLAG, True, "Keep the readable copy graph.json beside the database.", planned=True),
    Option(
        "CLAUDE_CONFIG_DIR", PATH, None, "Where Claude Code keeps its transcripts.", reader="shim", shown="~/.claude"
    ),
    Option("CODEX_HOME", PATH, None, "Where Codex keeps its transcripts.", reader="shim", shown="~/.codex"),
    # What is stored
    Option("KEYMEM_DECAY_TRANSIENT_DAYS", DAYS, 7.0, "Half-life of the profile transient.", unit="days"),
    Option("KEYMEM_DECAY_STANDARD_DAYS", DAYS, 90.0, "Half-life of the profile standard.", unit="days"),
    Option("KEYMEM_DECAY_STABLE_DAYS", DAYS, 365.0, "Half-life of the profile stable.", unit="days"),
    Option("KEYMEM_ALLOW_SECRETS", FLAG, False, "Store texts that look like credentials, too."),
    Option(
        "KEYMEM_TRANSCRIPT_ACCESS",
        FLAG,
        None,
        "Count turns in the host's transcript for provenance: never (false), with any host (true).",
        shown="recognised hosts only",
    ),
    # Reading
    Option(
        "KEYMEM_RECALL_DEADLINE_MS",
        _whole(1, 15_000),
        2_000,
        "Time for a recall or a direct retrieval; after it the best found so far is returned, marked `partial`.",
        unit="ms",
    ),
    # Keys
    Option("KEYMEM_KEY_HUB_MIN_LINKS", _whole(2, 1_000_000), 3, "Active memories that make a key a hub."),
    Option("KEYMEM_KEY_RECALL", FRACTION, None, "Least similarity of a query to a key.", shown=_AS_PROFILE),
    Option(
        "KEYMEM_KEY_MERGE",
        FRACTION,
        None,
        "Least similarity at which a new key joins an existing one.",
        shown=_AS_PROFILE,
    ),
    Option(
        "KEYMEM_SHORT_KEY_MERGE",
        FRACTION,
        None,
        "The same for keys of one or two words; 0 means only equal spelling.",
        shown=_AS_PROFILE,
    ),
    Option(
        "KEYMEM_KEY_AUTOLINK",
        FRACTION,
        None,
        "Least similarity at which a learned query becomes an alias.",
        shown=_AS_PROFILE,
    ),
    Option(
        "KEYMEM_AUTOKEY",
        FLAG,
        True,
        "Learn aliases from queries that reached a memory through a key that matched weakly.",
    ),
    Option("KEYMEM_AUTOKEY_PROMOTE_N", _whole(1, 1_000), 3, "How often a query must do so before it is learned."),
    Option("KEYMEM_AUTOKEY_MAX_ALIASES", _whole(0, 1_000), 8, "Learned aliases a key may have."),
    Option("KEYMEM_AUTOKEY_CONFIRM_FLOOR", FRACTION, 0.45, "Least similarity of a query that may teach."),
    Option(
        "KEYMEM_AUTOKEY_PRUNE_AGE",
        DAYS,
        30.0,
        "A learned alias that was never hit is dropped after this long.",
        unit="days",
    ),
    # Retrieval
    Option(
        "KEYMEM_RETRIEVAL",
        _choice("reference", "rrf"),
        "reference",
        "Direct retrieval: the reference design, or reciprocal rank fusion for comparison.",
    ),
    Option("KEYMEM_RERANK", FLAG, True, "Use the cross-encoder when its files are there.", planned=True),
    Option(
        "KEYMEM_RERANK_MODEL_PATH",
        PATH,
        None,
        "Directory of the cross-encoder.",
        shown="models/bge-reranker-v2-m3 in the data directory",
        planned=True,
    ),
    Option("KEYMEM_RERANK_POOL", _whole(1, 200), 30, "Candidates that are reranked.", planned=True),
    Option(
        "KEYMEM_RERANK_THREADS",
        _whole(1, 64),
        None,
        "Threads of the cross-encoder.",
        shown="as KEYMEM_EMBED_THREADS",
        planned=True,
    ),
    Option(
        "KEYMEM_RERANK_MIN_SCORE",
        LOGIT,
        None,
        "Refuse a whole result whose best cross-encoder logit is below this.",
        shown="off",
        planned=True,
    ),
    Option("KEYMEM_TASK_EVIDENCE_SELECTION", FLAG, True, "Give comparison questions evidence for both sides."),
    # Models
    Option(
        "EMBEDDING_BACKEND",
        _choice(*_BACKENDS),
        None,
        "Where embeddings come from.",
        shown="builtin",
        planned_values=tuple(backend for backend in _BACKENDS if backend not in BACKENDS_THERE),
    ),
    Option(
        "OPENAI_API_KEY",
        TEXT,
        None,
        "Key of the OpenAI backend; with it, that backend is the default.",
        shown="unset",
        secret=True,
        planned=True,
    ),
    Option("OPENAI_EMBEDDING_MODEL", TEXT, "text-embedding-3-small", "Model of the OpenAI backend.", planned=True),
    Option("OPENAI_BASE_URL", TEXT, "https://api.openai.com/v1", "Address of the OpenAI backend.", planned=True),
    Option(
        "KEYMEM_ALLOW_REMOTE",
        FLAG,
        True,
        "Whether a key in the environment may select the OpenAI backend.",
        planned=True,
    ),
    Option(
        "LOCAL_EMBEDDING_MODEL",
        TEXT,
        None,
        "Name of a local ONNX model; with it, `local` is the default.",
        shown="unset",
        planned=True,
    ),
    Option(
        "LOCAL_EMBEDDING_MODEL_PATH",
        PATH,
        None,
        "Directory of a local ONNX model of your own.",
        shown="unset",
        planned=True,
    ),
    Option("LOCAL_EMBEDDING_MODEL_FILE", TEXT, "model.onnx", "File in that directory.", planned=True),
    Option("HF_ENDPOINT", TEXT, "https://huggingface.co", "Where models are downloaded from.", planned=True),
    Option(
        "KEYMEM_EMBED_THREADS",
        _whole(1, 64),
        None,
        "Threads of a local model.",
        shown="a quarter of the machine, 1 to 6",
        planned=True,
    ),
    Option(
        "KEYMEM_AUTO_MIGRATE",
        FLAG,
        True,
        "Embed the keys again when the model changed; false refuses to start instead.",
        planned=True,
    ),
    Option("KEYMEM_FORCE_REEMBED", FLAG, False, "Embed every key again once.", planned=True),
    # Tools and hook
    Option("KEYMEM_COMPAT_TOOLS", FLAG, False, "Offer the tools of earlier versions too."),
    Option("KEYMEM_DIRECT_RECALL", FLAG, False, "Offer recall_memories, direct retrieval as one tool."),
    Option(
        "KEYMEM_HOOK_INSTALLED",
        FLAG,
        False,
        "The client has the prompt hook: instructions ask the agent to react to it. Each shim says it for its own session; "
        "in the daemon it is for clients without a shim.",
    ),
    Option(
        "KEYMEM_HOOK_MIN_CHARS",
        _whole(0, 10_000),
        6,
        "The hook skips shorter prompts.",
        unit="characters",
        reader="hook",
    ),
    Option(
        "KEYMEM_HOOK_TIMEOUT_MS",
        _whole(50, 60_000),
        2_000,
        "Hard limit of the hook's process.",
        unit="ms",
        reader="hook",
    ),
    Option("KEYMEM_HOOK_TOP_K", _whole(0, 20), 2, "Memories the hook adds at most.", reader="hook"),
    Option("KEYMEM_HOOK_MIN_REL", FRACTION, None, "Least relevance of a memory that the hook adds.", shown=_AS_PROFILE),
)

IGNORED: Final[tuple[str, ...]] = tuple(
    PREFIX + suffix
    for suffix in (
        "CONTENT_RECALL",
        "CONTENT_RECALL_SHORT",
        "MEMORY_DEDUP",
        "CONTRADICTION",
        "MIN_SCORE",
        "GATE_Z",
        "KEY_GATE",
        "SENTENCE_VECTORS",
    )
)
"""Settings of earlier versions that control nothing any more: recognised, ignored, named in `status`."""

_THRESHOLDS: Final = ("KEY_RECALL", "KEY_MERGE", "SHORT_KEY_MERGE", "KEY_AUTOLINK", "HOOK_MIN_REL")


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective value of every option. ``sources`` maps an option's name to where its value came from."""

    data_dir: Path
    daemon_port: int | None
    daemon_autostart: bool
    daemon_idle_ms: int
    session_reap_grace_ms: int
    cleanup_interval_ms: int
    graph_json: bool
    claude_config_dir: Path | None
    codex_home: Path | None
    allow_secrets: bool
    transcript_access: bool | None
    recall_deadline_ms: int
    key_hub_min_links: int
    autokey: bool
    autokey_promote_n: int
    autokey_max_aliases: int
    autokey_confirm_floor: float
    autokey_prune_age_days: float
    retrieval: Literal["reference", "rrf"]
    rerank: bool
    rerank_model_path: Path | None
    rerank_pool: int
    rerank_threads: int
    rerank_min_score: float | None
    task_evidence_selection: bool
    embedding_backend: Backend
    openai_api_key: str | None = field(repr=False)
    openai_embedding_model: str
    openai_base_url: str
    allow_remote: bool
    local_embedding_model: str | None
    local_embedding_model_path: Path | None
    local_embedding_model_file: str
    hf_endpoint: str
    embed_threads: int
    auto_migrate: bool
    force_reembed: bool
    compat_tools: bool
    direct_recall: bool
    hook_installed: bool
    hook_min_chars: int
    hook_timeout_ms: int
    hook_top_k: int
    half_lives: HalfLives
    threshold_overrides: Mapping[str, float]
    sources: Mapping[str, Source]
    warnings: tuple[str, ...]
    ignored: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """What has been read so far: values and sources by option name, and what had to be said about them."""

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def load_settings(environ: Mapping[str, str], config_toml: str | None = None, data_dir: Path | None = None) -> Settings:
    """The settings that ``environ`` and the text of `config.toml` make; never raises.

    ``data_dir`` is the directory in force when neither names one.
    """
    reading = _Reading()
    config = _parsed_config(config_toml, reading)
    for option in OPTIONS:
        _read(option, environ, config, reading)
    values = reading.values
    values["data_dir"] = values["data_dir"] or data_dir or Path(rendezvous.default_data_dir())
    values["embed_threads"] = values["embed_threads"] or max(1, min(6, (os.cpu_count() or 1) // 4))
    values["rerank_threads"] = values["rerank_threads"] or values["embed_threads"]
    values["embedding_backend"] = backend_in_force(
        values["embedding_backend"],
        has_key=bool(values["openai_api_key"]),
        allow_remote=values["allow_remote"],
        has_model=bool(values["local_embedding_model"] or values["local_embedding_model_path"]),
        there=BACKENDS_THERE,
    )
    values["autokey_prune_age_days"] = values.pop("autokey_prune_age")
    half_lives = HalfLives(
        **{profile: values.pop(f"decay_{profile}_days") for profile in ("transient", "standard", "stable")}
    )
    overrides = {suffix: value for suffix in _THRESHOLDS if (value := values.pop(suffix.lower())) is not None}
    return Settings(
        **values,
        half_lives=half_lives,
        threshold_overrides=MappingProxyType(overrides),
        sources=MappingProxyType(reading.sources),
        warnings=tuple(reading.warnings),
        ignored=_ignored(environ, config),
    )


def current_settings() -> Settings:
    """The settings of this process: its environment, and `config.toml` in its data directory."""
    environ = os.environ  # noqa: TID251 - this module is the daemon's reader of the environment
    directory = Path(rendezvous.data_dir())
    try:
        config = (directory / CONFIG_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return load_settings(environ, None, directory)
    except (OSError, UnicodeDecodeError) as problem:
        settings = load_settings(environ, None, directory)
        said = f"{CONFIG_FILE} cannot be read and is left out: {problem}"
        return replace(settings, warnings=(*settings.warnings, said))
    return load_settings(environ, config, directory)


def _parsed_config(text: str | None, reading: _Reading) -> dict[str, object]:
    if text is None:
        return {}
    try:
        config = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        reading.warnings.append(f"{CONFIG_FILE} cannot be read and is left out: {problem}")
        return {}
    options = {option.name for option in OPTIONS if option.in_config_file}
    recognised = options | {name.removeprefix(PREFIX).lower() for name in IGNORED} | {"namespaces"}
    for name in sorted(config.keys() - recognised):
        reading.warnings.append(f"{CONFIG_FILE} cannot set {name!r}; `keymemd config` lists what it can")
    return config


def _read(option: Option, environ: Mapping[str, str], config: Mapping[str, object], reading: _Reading) -> None:
    """Put the value of ``option`` and its source into ``reading``: the first usable of environment, file and default."""
    reading.values[option.name] = option.default
    reading.sources[option.name] = "default"
    for source, where, raw in _candidates(option, environ, config):
        try:
            value = option.kind.parse(raw)
        except (ValueError, OverflowError):
            got = "a value that is not shown" if option.secret else repr(raw[:60])
            default = option.shown or _shown(option.default)
            reading.warnings.append(f"{where} is {got}, not {option.kind.expected}; using the default ({default})")
            return
        reading.values[option.name] = value
        reading.sources[option.name] = source
        missing = option.missing(value)
        # Other programs have uses of their own for these variables: that they are set asks keymem for nothing.
        if missing is not None and not (source == "environment" and option.variable.startswith(("OPENAI_", "HF_"))):
            reading.warnings.append(missing)
        return


def _candidates(
    option: Option, environ: Mapping[str, str], config: Mapping[str, object]
) -> list[tuple[Source, str, str]]:
    found: list[tuple[Source, str, str]] = [
        ("environment", variable, environ[variable]) for variable in option.variables if environ.get(variable)
    ]
    value = config.get(option.name) if option.in_config_file else None
    if value is not None and value != "":
        raw = str(value).lower() if isinstance(value, bool) else str(value)
        found.append(("config file", f"{CONFIG_FILE}: {option.name}", raw))
    return found


def backend_in_force(
    asked: Backend | None, *, has_key: bool, allow_remote: bool, has_model: bool, there: Sequence[Backend]
) -> Backend:
    """The backend asked for if it can be had, else the first that the other settings ask for, of those that are ``there``."""
    wanted: Backend = "builtin"
    if has_key and (asked == "openai" or (asked is None and allow_remote)):
        wanted = "openai"
    elif has_model and asked in ("local", None):
        wanted = "local"
    return wanted if wanted in there else "builtin"


def _ignored(environ: Mapping[str, str], config: Mapping[str, object]) -> tuple[str, ...]:
    found = []
    for name in IGNORED:
        suffix = name.removeprefix(PREFIX)
        found += [variable for variable in (name, EARLIER_PREFIX + suffix) if environ.get(variable)]
        if suffix.lower() in config:
            found.append(f"{CONFIG_FILE}: {suffix.lower()}")
    return tuple(found)


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "unset"
        case float() if value == int(value):
            return str(int(value))
        case _:
            return str(value)


def _meaning(option: Option) -> str:
    if option.planned:
        return f"**Not yet.** {option.help}"
    later = " and ".join(f"`{value}`" for value in option.planned_values)
    return f"{option.help} **Not yet:** {later}." if later else option.help


def reference_page() -> str:
    """`docs/configuration.md`: every option, from the table."""
    lines = [
        "# Configuration",
        "",
        "Generated by `python -m keymem_daemon.settings`; a test compares it.",
        "",
        "An option is taken from the environment, else from `config.toml` in the data directory (`name = value`), else it has",
        "its default. `keymemd config` shows the effective values and where each came from. A value that cannot be used is",
        "replaced by the default, and `keymemd status` says so. Every `KEYMEM_X` answers to `SUPER_MEMORY_X` as well.",
        "",
        "What is marked **not yet** has no effect in this version. `keymemd config` refuses to set it, and `keymemd status` names it",
        "where it is set all the same.",
        "",
        "| variable | in config.toml | value | default | meaning |",
        "|---|---|---|---|---|",
    ]
    for option in OPTIONS:
        name = f"`{option.name}`" if option.in_config_file else "–"
        default = option.shown or f"`{_shown(option.default)}`"
        unit = f" ({option.unit})" if option.unit else ""
        lines.append(
            f"| `{option.variable}` | {name} | {option.kind.expected}{unit} | {default} | {_meaning(option)} |"
        )
    lines += [
        "",
        "Settings of earlier versions that control nothing any more are recognised, ignored and named by `keymemd status`:",
        ", ".join(f"`{name}`" for name in IGNORED) + ".",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(reference_page())
