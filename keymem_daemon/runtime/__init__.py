"""The process: assembly, serving, scheduling, idling, the clock and the logs."""
