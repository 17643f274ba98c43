"""Draws what policies lost as an SVG: one small chart a scenario, one line a policy. No library: a chart of lines is a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10

from panels.simulate import Played

WIDTH, HEIGHT, COLUMNS = 300, 200, 3
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 30, 30
LEGEND = 34
# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {"fixed": "#999999", "random": "#e69f00", "best so far": "#0072b2", "record": "#d55e00", "oracle": "#009e73"}


def chart(scenarios: Sequence[tuple[str, int, Sequence[Played]]]) -> str:
    """Shape: of each scenario its name, its number of panels, and its policies."""
    columns = min(COLUMNS, len(scenarios))
    rows = -(-len(scenarios) // columns)
    width, height = columns * WIDTH, rows * HEIGHT + LEGEND
    policies = list(dict.fromkeys(p.policy for _, _, played in scenarios for p in played))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="11" fill="#333">',
        "<title>Regret of each policy: useful answers lost against an oracle, over the panels asked</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for n, (name, panels, played) in enumerate(scenarios):
        out.append(f'<g transform="translate({n % columns * WIDTH} {n // columns * HEIGHT})">{plot(name, panels, played)}</g>')
    at = LEFT
    for policy in policies:
        out.append(f'<line x1="{at}" x2="{at + 18}" y1="{height - 16}" y2="{height - 16}" stroke="{colour(policy)}" stroke-width="2.5"/>')
        out.append(f'<text x="{at + 23}" y="{height - 12}">{escape(policy)}</text>')
        at += 40 + 7 * len(policy)
    return "\n".join([*out, "</svg>"]) + "\n"


def plot(name: str, panels: int, played: Sequence[Played]) -> str:
    top = nice(max((point for p in played for point in p.curve), default=1.0))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    out = [f'<text x="{LEFT}" y="18" font-weight="600">{escape(name)}</text>']
    for part in range(5):
        y = TOP + high * (1 - part / 4)
        out.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * part / 4:g}</text>')
    for part in range(3):
        out.append(f'<text x="{LEFT + wide * part / 2:.1f}" y="{HEIGHT - 14}" text-anchor="middle">{panels * part // 2}</text>')
    for one in played:
        points = " ".join(f"{LEFT + wide * (i + 1) / len(one.curve):.1f},{TOP + high * (1 - value / top):.1f}" for i, value in enumerate(one.curve))
        start = f"{LEFT},{TOP + high:.1f}"
        out.append(f'<polyline points="{start} {points}" fill="none" stroke="{colour(one.policy)}" stroke-width="2" stroke-linejoin="round"/>')
    return "".join(out)


def colour(policy: str) -> str:
    return COLOURS.get(policy, "#333333")


def nice(value: float) -> float:
    """Rounds up to a number that quarters well."""
    if value <= 0:
        return 1.0
    step = 10.0 ** floor(log10(value))
    return next(step * m for m in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * m >= value)
