"""One module a command, each with `configure(parser)` and `run(given) -> int`, the exit code."""
