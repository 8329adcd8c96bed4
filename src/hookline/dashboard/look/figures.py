"""Draws sparks, plots and bars as SVG: geometry in attributes, so that a strict content policy holds."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

_SPARK_W, _SPARK_H = 120.0, 24.0
_PLOT_W, _PLOT_H = 720.0, 200.0
_SMALLEST = 2.0  # of a bar that is not empty: it can still be seen


class Bar(NamedTuple):
    """A bar of a spark: attempts, and how many of them failed."""

    total: float
    failed: float = 0.0


def spark(bars: Sequence[Bar], title: str, *, are_failures: bool = False) -> Markup:
    """Bars on a line; the failed part is at the bottom and red."""
    most = max((bar.total for bar in bars), default=0.0) or 1.0
    step = _SPARK_W / max(1, len(bars))
    width = max(1.0, step - 1.0)
    parts = []
    for n, bar in enumerate(bars):
        failed = bar.total if are_failures else bar.failed
        low = _height(failed, most)
        high = _height(bar.total - failed, most)
        if low:
            parts.append(_rect("b", n * step, _SPARK_H - low, width, low))
        if high:
            parts.append(_rect("a", n * step, max(0.0, _SPARK_H - low - high), width, high))
    return Markup(
        '<svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" role="img" aria-label="{0}">'
        "<title>{0}</title>{1}</svg>"
    ).format(title, Markup("").join(parts))


class Line(NamedTuple):
    """A line of a plot: its class, and a value or None for each point."""

    name: str
    values: Sequence[float | None]


class Plot(NamedTuple):
    """A plot with a logarithmic scale in milliseconds, ready to be shown."""

    svg: Markup
    marks: tuple[str, ...]  # of the vertical scale, from top to bottom


def plot(
    lines: Iterable[Line], places: Sequence[float], title: str, *, trouble: tuple[float, float] | None = None
) -> Plot:
    """Lines over places from 0 to 1; trouble is shaded from one place to another."""
    lines = tuple(lines)
    values = [value for line in lines for value in line.values if value is not None and value > 0]
    low = 10.0 ** math.floor(math.log10(min(values, default=10.0)))
    high = 10.0 ** math.ceil(math.log10(max(values, default=1_000.0) * 1.0001))
    decades = max(1, round(math.log10(high / low)))

    def y(value: float) -> float:
        share = math.log10(max(value, low) / low) / decades
        return _PLOT_H * (1.0 - min(1.0, share))

    parts = []
    if trouble is not None:
        since, until = (_PLOT_W * min(1.0, max(0.0, place)) for place in trouble)
        parts.append(_rect("span", since, 0.0, max(1.0, until - since), _PLOT_H))
        parts.append(Markup('<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="200"/>').format(since))
    for n in range(decades + 1):
        at = _PLOT_H * n / decades
        kind = "base" if n == decades else "grid"
        parts.append(Markup('<line class="{0}" x1="0" x2="720" y1="{1:.0f}" y2="{1:.0f}"/>').format(kind, at))
    parts += [
        Markup('<path class="{}" d="{}"/>').format(line.name, _path(line.values, places, y)) for line in lines
    ]
    svg = Markup(
        '<svg class="area" viewBox="0 0 720 200" preserveAspectRatio="none" role="img" aria-label="{0}">{1}</svg>'
    ).format(title, Markup("").join(parts))
    return Plot(svg, tuple(_scale(high / 10.0**n) for n in range(decades + 1)))


def bar(parts: Sequence[tuple[str, float]], whole: float, title: str) -> Markup:
    """A horizontal bar of parts on a scale that ends at `whole`."""
    at = 0.0
    shown = []
    for name, value in parts:
        share = 100.0 * value / whole if whole > 0 else 0.0
        shown.append(
            Markup('<rect class="{}" x="{:.2f}%" width="{:.2f}%"/>').format(name, at, max(share, 0.0))
        )
        at += share
    return Markup('<svg class="hbar" role="img" aria-label="{0}">{1}</svg>').format(
        title, Markup("").join(shown)
    )


def _path(values: Sequence[float | None], places: Sequence[float], y: Callable[[float], float]) -> str:
    """Gaps where nothing was measured; a lone point is a short line, so that it can be seen."""
    steps: list[str] = []
    pen_is_down = False
    for n, (value, place) in enumerate(zip(values, places, strict=True)):
        if value is None:
            pen_is_down = False
            continue
        x = _PLOT_W * place
        steps.append(f"{'L' if pen_is_down else 'M'}{x:.1f} {y(value):.1f}")
        is_alone = not pen_is_down and (n + 1 == len(values) or values[n + 1] is None)
        if is_alone:
            steps.append("h3")
        pen_is_down = True
    return "".join(steps)


def _height(value: float, most: float) -> float:
    return max(_SMALLEST, (_SPARK_H - 2.0) * value / most) if value > 0 else 0.0


def _rect(name: str, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
        name, x, y, width, height
    )


def _scale(value: float) -> str:
    if value >= 1_000:
        return f"{value / 1_000:g} s"
    return f"{value:g} ms"
