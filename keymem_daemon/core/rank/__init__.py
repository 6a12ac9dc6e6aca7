"""Orderings: pure functions from signals to scores. Where the signals come from is the caller's business."""
