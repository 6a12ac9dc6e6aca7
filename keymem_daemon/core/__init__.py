"""The rules of the memory. Pure: no I/O, no clock, no randomness, no logging, no async, no numpy."""
