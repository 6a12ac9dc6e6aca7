"""Show the effective settings and where each came from, or set one in `config.toml` of the data directory.

A setting comes from the environment, else from `config.toml`, else it has its default. What is shown is what a daemon would take
that is started from here now; a running one keeps what it started with until `keymemd restart`.
"""

from __future__ import annotations

import argparse
from typing import Any

from keymem_daemon.cli.config_file import changed, read, write
from keymem_daemon.cli.failure import USAGE, CommandFailed
from keymem_daemon.cli.terminal import bold, clean, dim, print_json, say
from keymem_daemon.settings import OPTIONS, Option, Settings, current_settings

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("key", metavar="KEY", nargs="?", help="a setting, as `keymemd config` lists them")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="what to set it to")
    parser.add_argument("--unset", action="store_true", help="take KEY out of config.toml")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    if given.key is None:
        if given.unset:
            raise CommandFailed("--unset needs a KEY", "See `keymemd config --help`.", USAGE)
        settings = current_settings()
        _print([_view(settings, option) for option in OPTIONS], given.json)
        return 0
    option = _option(given.key)
    if given.unset and given.value is not None:
        raise CommandFailed("--unset takes no VALUE", "See `keymemd config --help`.", USAGE)
    if given.unset or given.value is not None:
        _set(option, given.value)
    settings = current_settings()
    view = _view(settings, option)
    if given.json:
        print_json(view)
    elif given.value is None and not given.unset:
        later = "not yet: " if option.planned else ""
        say(_shown(view) + dim(f"  ({view['source']})"), dim(later + option.help))
    else:
        say(f"{option.name} is now {_shown(view)} ({view['source']})")
        say(dim("`keymemd restart` brings it into force"))
        if view["source"] == "environment":
            say(dim(f"the environment's {option.variable} goes before config.toml"))
    return 0


def _option(word: str) -> Option:
    wanted = word.strip().casefold().replace("-", "_")
    for option in OPTIONS:
        if wanted in (option.name, *(variable.casefold() for variable in option.variables)):
            return option
    raise CommandFailed(f"there is no setting {word!r}", "`keymemd config` lists them.", USAGE)


def _set(option: Option, text: str | None) -> None:
    """Write ``text`` as the option's value, or take the option out when it is ``None``."""
    if not option.in_config_file:
        raise CommandFailed(
            f"{option.name} is not read from config.toml", f"Set {option.variable} in the environment.", USAGE
        )
    value = None
    if text is not None:
        try:
            value = option.kind.parse(text)
        except (ValueError, OverflowError):
            raise CommandFailed(
                f"{option.name} takes {option.kind.expected}, not {text[:60]!r}", "Nothing was changed.", USAGE
            ) from None
        if (missing := option.missing(value)) is not None:
            raise CommandFailed(missing, "Nothing was changed.", USAGE)
        if not text.strip():
            raise CommandFailed(f"{option.name} cannot be empty", "--unset takes it out of config.toml.", USAGE)
    write(changed(read(), option.name, value))


def _view(settings: Settings, option: Option) -> dict[str, Any]:
    value = _value(settings, option)
    source = settings.sources[option.name]
    if option.secret:
        value = None if value is None else "(set, not shown)"
    if value is None:
        value = option.shown
    return {
        "name": option.name,
        "variable": option.variable,
        "value": value if isinstance(value, bool | int | float) else str(value),
        "unit": option.unit,
        "source": source,
        "settable": option.in_config_file,
        "planned": option.planned,
        "help": option.help,
    }


def _value(settings: Settings, option: Option) -> object:
    """The effective value; ``None`` where the option is left to something else."""
    name = option.name
    match name:
        case "decay_transient_days" | "decay_standard_days" | "decay_stable_days":
            return getattr(settings.half_lives, name.removeprefix("decay_").removesuffix("_days"))
        case "autokey_prune_age":
            return settings.autokey_prune_age_days
        case _ if hasattr(settings, name):
            return getattr(settings, name)
        case _:
            return settings.threshold_overrides.get(name.upper())


def _print(views: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"settings": views})
        return
    width = max(len(view["name"]) for view in views)
    for view in views:
        line = f"{view['name']:<{width}}  {_shown(view)}"
        if view["planned"]:
            say(dim(f"{line}  (not yet)"))
            continue
        say(line + dim("  (default)") if view["source"] == "default" else bold(line) + f"  ({view['source']})")


def _shown(view: dict[str, Any]) -> str:
    value, unit = view["value"], f" {view['unit']}" if view["unit"] else ""
    return (str(value).lower() if isinstance(value, bool) else clean(str(value))) + unit
