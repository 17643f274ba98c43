"""Renders results as Markdown: medians over the rounds of a run, with the range where there was more than one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from bench import phases, servers

Row = dict[str, Any]
PAGE = servers.ROOT / "docs" / "PERFORMANCE.md"
BEGIN, END = "<!-- results: written by python -m bench.run --write -->", "<!-- end of results -->"
NAMES = {"upstream": "straight to the upstream", "ours": "this server", "ours+limits": "this server, key with rpm and budget", "litellm": "LiteLLM proxy"}


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines)])


def number(value: float, places: int) -> str:
    return f"{value:,.{places}f}"


def spread(values: list[float], places: int) -> str:
    """The median, and the range in brackets."""
    if not values:
        return "-"
    middle = number(median(values), places)
    return middle if len(values) == 1 else f"{middle} ({number(min(values), places)}-{number(max(values), places)})"


def pick(rows: list[Row], name: str, part: str = "") -> list[float]:
    return [row[name][part] if part else row[name] for row in rows if name in row and (not part or part in row[name])]


def of(rows: list[Row], phase: str, target: str, clients: int) -> list[Row]:
    return [r for r in rows if r["phase"] == phase and r["target"] == target and r["clients"] == clients]


def targets(rows: list[Row], phase: str) -> list[str]:
    return [name for name in NAMES if any(r["phase"] == phase and r["target"] == name for r in rows)]


def over(rows: list[Row], base: list[Row], name: str, part: str) -> list[float]:
    """What a server adds, round by round, to the same load straight to the upstream."""
    return [mine - bare for mine, bare in zip(pick(rows, name, part), pick(base, name, part), strict=False)]


def errors(rows: list[Row]) -> str:
    return number(sum(pick(rows, "errors")), 0)


def ledger(rows: list[Row]) -> str:
    if not pick(rows, "ledger_rows"):
        return "none"
    return "exact" if all(r["ledger_exact"] for r in rows) else f"WRONG: {sum(pick(rows, 'ledger_rows')):,.0f} of {sum(pick(rows, 'upstream_requests')):,.0f}"


def direct(rows: list[Row], phase: str) -> str:
    lines = []
    for clients in sorted({r["clients"] for r in rows if r["phase"] == phase}):
        base = of(rows, phase, "upstream", clients)
        for target in targets(rows, phase):
            mine = of(rows, phase, target, clients)
            if target == "upstream":
                figures = ["-", spread(pick(mine, "total", "p50"), 2), spread(pick(mine, "total", "p99"), 2), "-"]
            else:
                figures = [
                    spread(pick(mine, "cpu_ms_per_call"), 2),
                    "+" + spread(over(mine, base, "total", "p50"), 2),
                    "+" + spread(over(mine, base, "total", "p99"), 2),
                    spread(pick(mine, "pss_mb"), 0),
                ]
            calls = spread(pick(mine, "per_second"), 0)
            lines.append([str(clients) if phase == "direct" else "25 calls/s", NAMES[target], *figures, calls, errors(mine), ledger(mine)])
    head = ["clients", "server", "CPU ms a call", "p50 ms", "p99 ms", "web PSS MB", "calls/s", "errors", "ledger"]
    return table(head, lines)


def streams(rows: list[Row]) -> str:
    lines = []
    for clients in sorted({r["clients"] for r in rows if r["phase"] == "streams"}):
        base = of(rows, "streams", "upstream", clients)
        for target in targets(rows, "streams"):
            mine = of(rows, "streams", target, clients)
            bare = target == "upstream"
            first = [spread(pick(mine, "ttft", p) if bare else over(mine, base, "ttft", p), 1) for p in ("p50", "p99")]
            lines.append(
                [
                    f"{clients:,}",
                    NAMES[target],
                    errors(mine),
                    *(first if bare else [f"+{value}" for value in first]),
                    *(spread(pick(mine, name, p), 1) for name in ("chunk", "jitter") for p in ("p50", "p99")),
                    "-" if bare else spread(pick(mine, "cpu_us_per_chunk"), 0),
                    "-" if bare else spread(pick(mine, "pss_mb"), 0),
                    ledger(mine),
                ]
            )
    head = [
        "streams",
        "server",
        "errors",
        "first token p50 ms",
        "p99",
        "chunk delay p50 ms",
        "p99",
        "jitter p50 ms",
        "p99",
        "CPU us a chunk",
        "web PSS MB",
        "ledger",
    ]
    return table(head, lines)


def panels(rows: list[Row]) -> str:
    lines = []
    for target in targets(rows, "panels"):
        mine = [r for r in rows if r["phase"] == "panels" and r["target"] == target]
        totals = [[share / phases.SEAT_MS * 100 - 100 for share in pick(mine, "total", p)] for p in ("p50", "p99")]
        lines.append(
            [
                f"{mine[0]['clients']:,} " + ("calls" if target == "upstream" else "panels"),
                NAMES[target],
                errors(mine),
                number(sum(pick(mine, "incomplete")), 0),
                *(f"{spread(pick(mine, 'total', p), 0)} (+{spread(t, 1)}%)" for p, t in zip(("p50", "p99"), totals, strict=True)),
                *(spread(pick(mine, "slack", p), 1) for p in ("p50", "p99")),
                spread(pick(mine, "cpu_ms_per_call"), 2) if pick(mine, "cpu_ms_per_call") else "-",
                spread(pick(mine, "pss_mb"), 0) if pick(mine, "cpu_ms_per_call") else "-",
                ledger(mine),
            ]
        )
    head = [
        "at once",
        "server",
        "errors",
        "not complete",
        "p50 ms (over the slowest seat)",
        "p99 ms",
        "last seat's answer to the reply's end, p50 ms",
        "p99",
        "CPU ms a panel",
        "web PSS MB",
        "ledger",
    ]
    return table(head, lines)


def translated(rows: list[Row]) -> str:
    """What it costs to give a chat upstream's stream to a Messages client, beside giving it to a chat client."""
    lines = []
    for target in targets(rows, "translated"):
        figures = [pick(of(rows, phase, target, 16), "cpu_us_per_chunk") for phase in ("passed", "translated")]
        times = median(figures[1]) / median(figures[0]) if all(figures) else 0.0
        lines.append([NAMES[target], *(spread(f, 0) for f in figures), f"{times:.1f}", errors(of(rows, "translated", target, 16))])
    return table(["server", "CPU µs a chunk, passed through", "translated", "times", "errors"], lines)


def headline(rows: list[Row]) -> str:
    """How many times less CPU a recorded call takes than at LiteLLM's proxy, by number of clients."""
    said = []
    for clients in sorted({r["clients"] for r in rows if r["phase"] == "direct"}):
        theirs = pick(of(rows, "direct", "litellm", clients), "cpu_ms_per_call")
        for target in ("ours", "ours+limits"):
            if theirs and (mine := pick(of(rows, "direct", target, clients), "cpu_ms_per_call")):
                said.append(f"{clients} clients, {NAMES[target]}: 1/{median(theirs) / median(mine):.1f}")
    return "CPU of a call against LiteLLM's proxy: " + "; ".join(said) + "." if said else ""


def render(results: dict[str, Any]) -> str:
    rows, about = results["rows"], results["machine"]
    present = {r["phase"] for r in rows}
    parts = [
        f"Run of {results['at']}, revision {results['revision']}" + (", the quick form" if results["quick"] else "") + ".",
        f"Machine: {about['cpu']}, {about['cores']} cores, {about['memory']}, {about['kernel']}, Python {about['python']}; "
        f"a million turns of a plain Python loop take {about['loop_ms']} ms of CPU here.",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + ".",
    ]
    if "direct" in present:
        parts += ["### Direct calls, as many as the server takes", direct(rows, "direct"), headline(rows)]
    if "paced" in present:
        parts += ["### Direct calls on a timetable", direct(rows, "paced")]
    if "streams" in present:
        parts += ["### Streams", streams(rows)]
    if "translated" in present:
        parts += ["### A stream translated", translated(rows)]
    if "panels" in present:
        parts += ["### Panels of five", panels(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(text: str) -> None:
    """Puts the rendered results between their two marks in docs/PERFORMANCE.md."""
    page = PAGE.read_text()
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    PAGE.write_text(f"{before}\n\n{text}\n{after}")
