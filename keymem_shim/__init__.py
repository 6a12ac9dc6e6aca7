"""The stdio MCP server that clients spawn: a thin proxy to the daemon, standard library only."""

VERSION = "0.1.0"
