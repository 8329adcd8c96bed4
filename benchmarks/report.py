"""Shows the figures and compares them with what we promise."""

from collections.abc import Iterable, Sequence

import msgspec

from measure import Result

HEADINGS = (
    "system",
    "store",
    "publishing",
    "pace",
    "accepted/s",
    "delivered/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "CPU µs",
    "with database",
    "peak MB",
    "step ns",
    "as sent",
)
DELIVERED_PER_S = {1: 5_000.0, 100: 10_000.0}  # by batch size, on two cores that also carry the load
IDLE_P50_MS = 5.0
PEAK_MB = 150.0
BASELINE = "textbook, no sleep"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A promise and what became of it."""

    text: str
    actual: float
    met: bool


def targets(results: Iterable[Result]) -> list[Target]:
    """What we promise of hookline, for every run it applies to."""
    found = []
    for result in results:
        if result.system != "hookline":
            continue
        where = _where(result)
        promised, actual = DELIVERED_PER_S.get(result.load.batch), result.speed.delivered_per_s
        if result.load.pace == "closed" and promised:
            found.append(
                Target(text=f"{where}: ≥ {promised:,.0f} delivered/s", actual=actual, met=actual >= promised)
            )
        if result.load.pace == "idle":
            p50 = result.speed.p50_ms if result.speed.p50_ms is not None else float("inf")
            found.append(Target(text=f"{where}: p50 ≤ {IDLE_P50_MS} ms", actual=p50, met=p50 <= IDLE_P50_MS))
        peak = result.peak_mb["hookline"]
        found.append(Target(text=f"{where}: ≤ {PEAK_MB:.0f} MB resident", actual=peak, met=peak <= PEAK_MB))
    return found


def comparison(results: Sequence[Result]) -> str | None:
    """hookline on PostgreSQL against the baseline in the same run; None when one of them was not run."""
    closed = [result for result in results if result.load.pace == "closed"]
    baseline = [result for result in closed if result.system == BASELINE]
    ours = [result for result in closed if result.system == "hookline" and result.store == "postgres"]
    if not baseline or not ours or not baseline[0].speed.delivered_per_s:
        return None
    base = baseline[0].speed.delivered_per_s
    factors = (f"{one.speed.delivered_per_s / base:.1f} × {publishing(one)}" for one in ours)
    return f"hookline on PostgreSQL delivers {', '.join(factors)} of what the {BASELINE} does"


def problems(results: Iterable[Result]) -> list[str]:
    """What was not received exactly as sent, in words."""
    return [f"{_where(result)}: {_counts(result)}" for result in results if not result.check.holds()]


def remarks(results: Iterable[Result]) -> list[str]:
    """What is no failure, for nothing was accepted, but has to be known to read the figures."""
    return [
        f"{_where(result)}: {_counts(result)}"
        for result in results
        if result.check.holds() and result.check.refused + result.check.unanswered > 0
    ]


def publishing(result: Result) -> str:
    return "single" if result.load.batch == 1 else f"batches of {result.load.batch}"


def row(result: Result) -> tuple[str, ...]:
    """The result as the table's cells."""
    speed, own = result.speed, result.cpu_us[result.system]
    pace = result.load.pace + (f" {result.load.rate:,.0f}/s" if result.load.rate else "")
    return (
        result.system,
        result.store,
        publishing(result),
        pace,
        f"{speed.accepted_per_s:,.0f}",
        f"{speed.delivered_per_s:,.0f}",
        *("–" if value is None else f"{value:,.1f}" for value in (speed.p50_ms, speed.p95_ms, speed.p99_ms)),
        f"{own:,.0f}",
        f"{own + result.cpu_us.get('postgres', 0.0):,.0f}",
        f"{result.peak_mb[result.system]:,.0f}",
        f"{result.step_ns:,.0f}",
        "yes" if result.check.holds() else "NO",
    )


def table(results: Iterable[Result]) -> str:
    """For a terminal."""
    rows = [HEADINGS, *map(row, results)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 4 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in rows
    )


def markdown(results: Iterable[Result], machine: dict[str, str], load: str) -> str:
    """For benchmarks/README.md: where, of what, and the table."""
    lines = [*(f"- {name}: {value}" for name, value in machine.items()), f"- load: {load}", ""]
    lines.append("| " + " | ".join(HEADINGS) + " |")
    lines.append("|" + "---|" * 4 + "---:|" * (len(HEADINGS) - 5) + "---|")
    lines.extend("| " + " | ".join(row(result)) + " |" for result in results)
    return "\n".join(lines)


def _where(result: Result) -> str:
    return f"{result.system}, {result.store}, {publishing(result)}, {result.load.pace}"


def _counts(result: Result) -> str:
    check = msgspec.structs.asdict(result.check)
    names = ("missing", "duplicates", "corrupt", "forged", "invented", "refused", "unanswered", "example")
    said = ", ".join(f"{name} {check[name]}" for name in names if check[name])
    return f"accepted {result.check.accepted}" + (f", {said}" if said else "")
