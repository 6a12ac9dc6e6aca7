"""The agent clients that `keymemd install` knows: where each keeps its configuration, and how to change that without harm."""
