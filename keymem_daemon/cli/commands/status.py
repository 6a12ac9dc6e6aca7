"""How everything is: daemon, store, models, sessions, hook, sweeps, and for each problem the step that mends it.

Starts nothing. Exit code 0 when all is well, 1 when something is not (or is not ready yet), 2 when no daemon runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from keymem_daemon.cli.contact import ask_once
from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.cli.terminal import bold, clean, dim, green, print_json, red, say, yellow
from keymem_shim import VERSION, rendezvous

__all__ = ["configure", "run"]

DEGRADED: Final = 1
DOWN: Final = 2
ANSWER_S: Final = 2.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    directory = rendezvous.data_dir()
    found = rendezvous.probe(directory)
    if isinstance(found, rendezvous.Unreachable):
        return _down(directory, found.reason, given.json)
    try:
        report = ask_once(found.discovery, "GET", "/status", limit_s=ANSWER_S)
    except ConnectionError as problem:
        return _down(directory, str(problem), given.json)
    except CommandFailed as failure:
        report = {"state": "degraded", "daemon": {"pid": found.discovery.pid}, "problems": []}
        report["problems"].append({"problem": str(failure), "mend": "Run `keymemd restart`."})
    if isinstance(found, rendezvous.NeedsRestart):
        report["state"] = "degraded"
        report["problems"].append({"problem": f"the daemon is old: {found.reason}", "mend": "Run `keymemd restart`."})
    if given.json:
        print_json(report)
    else:
        _show(report)
    return 0 if report["state"] == "healthy" else DEGRADED


def _down(directory: str, reason: str, as_json: bool) -> int:
    from keymem_daemon.cli.process import hung_step  # noqa: PLC0415 - it loads more than a healthy daemon's status needs
    from keymem_shim import holder  # noqa: PLC0415 - as above

    step = "`keymemd start` starts the daemon."
    if (pid := holder.single_server(directory)) is not None:
        reason, step = holder.said_of(directory, pid), "Agents on other directories are not affected."
    elif holder.is_held(directory):
        reason = f"a process holds the data directory; {reason}"
        step = f"It may be starting or stopping. {hung_step(directory)}"
    if as_json:
        facts = {"state": "down", "reason": reason, "mend": step, "data_dir": directory, "version": VERSION}
        print_json(facts)
    else:
        say(f"{red('down')}: {reason}", step, dim(f"data directory {directory}"))
    return DOWN


def _show(report: Mapping[str, Any]) -> None:
    state = report["state"]
    colour = green if state == "healthy" else yellow
    daemon = report["daemon"]
    facts = [f"pid {daemon['pid']}"]
    if "version" in daemon:
        facts.append(f"version {daemon['version']}")
        facts.append(f"up {_duration(daemon['uptime_s'])}")
        facts.append(f"{_size(daemon['memory_bytes'])} of memory")
        facts.append(f"started by a {daemon['started_by']}")
    _line("daemon", f"{colour(state)}, {', '.join(facts)}")
    if "data_dir" in daemon:
        _line("data", daemon["data_dir"])
    if report.get("counts"):
        counts = report["counts"]
        _line("store", f"{counts['memories']:,} memories, {counts['keys']:,} keys, {counts['links']:,} links")
    if report.get("store"):
        store = report["store"]
        _line("", f"{_size(store['size_bytes'])}, integrity {store['integrity']}, schema {store['schema_version']}")
    if report.get("models"):
        models = report["models"]
        encoder = models["encoder"]
        _line("models", f"{encoder['fingerprint']} {encoder['state']}; Korean {models['korean']}")
        _line("", "texts leave this machine" if report.get("text_leaves_machine") else "no text leaves this machine")
    if "sessions" in report:
        sessions = report["sessions"]
        names = ", ".join(sorted({str(s["client"] or s["host_agent"] or "unnamed") for s in sessions}))
        _line("sessions", f"{len(sessions)}" + (f" ({names})" if names else ""))
    if report.get("hook", {}).get("runs"):
        hook = report["hook"]
        outcomes = ", ".join(f"{count} {name}" for name, count in hook["outcomes"].items())
        _line("hook", f"{outcomes}; p50 {hook['p50_ms']} ms, p95 {hook['p95_ms']} ms")
    for name, job in report.get("scheduler", {}).items():
        _line("sweeps" if name == "sweep" else "", f"{name}: last {job['last_at'] or 'never'}, next {job['next_at']}")
    for problem in report["problems"]:
        _line("problem", f"{yellow(clean(problem['problem']))}. {clean(problem['mend'])}")


def _line(name: str, text: str) -> None:
    say(f"{bold(f'{name:<9}')} {text}")


def _size(count: int) -> str:
    return f"{count / 1024 / 1024:.1f} MiB"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{rest} s"
