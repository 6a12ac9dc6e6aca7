"""A line chart as SVG text: shares over cycles. Nothing but strings, so that the picture needs no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 790
HEIGHT: Final = 400
LEFT: Final = 56
RIGHT: Final = 266
TOP: Final = 24
BOTTOM: Final = 48
STEP: Final = 0.05
LABEL_GAP: Final = 15.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through one value, in [0, 1], for each x."""

    name: str
    colour: str
    dashed: bool
    values: Sequence[float]


def drawn(xs: Sequence[int], lines: Sequence[Curve]) -> str:
    """The picture; the y axis spans what the values do, in steps of 0.05."""
    low = math.floor(min(min(line.values) for line in lines) / STEP) * STEP
    high = math.ceil(max(max(line.values) for line in lines) / STEP) * STEP
    high = high if high > low else low + STEP

    def x_of(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / max(1, xs[-1])

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for number in range(round((high - low) / STEP) + 1):
        value = low + number * STEP
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end" fill="#444444">{value:.2f}</text>',
        ]
    parts += [
        f'<text x="{x_of(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#444444">{x:,}</text>' for x in (xs[0], xs[len(xs) // 2], xs[-1])
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle" fill="#444444">recall → read cycles</text>')
    taken = TOP - LABEL_GAP
    for line in sorted(lines, key=lambda line: -line.values[-1]):
        points = " ".join(f"{x_of(x):.1f},{y_of(value):.1f}" for x, value in zip(xs, line.values, strict=True))
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        taken = max(taken + LABEL_GAP, y_of(line.values[-1]))
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>',
            f'<text x="{WIDTH - RIGHT + 8}" y="{taken + 4:.1f}" fill="{line.colour}">{escape(line.name)} {line.values[-1]:.3f}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
