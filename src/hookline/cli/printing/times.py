"""Shows times as people say them: "3m ago", "in 4m"."""

from hookline import rfc3339

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class Times:
    """Shows the times of one answer, as of now, or in UTC."""

    def __init__(self, *, utc: bool = False) -> None:
        from hookline.clock import SystemClock

        self._now = SystemClock().wall()
        self._utc = utc

    def show(self, at: str | None) -> str:
        """A time of the API."""
        if at is None:
            return ""
        if self._utc:
            return at[:19].replace("T", " ") + "Z"
        return relative(rfc3339.read(at), now=self._now)

    def both(self, at: str) -> str:
        """The time and how far away it is."""
        return f"{at} ({relative(rfc3339.read(at), now=self._now)})"


def relative(at: float, *, now: float) -> str:
    """How long ago, or in how long."""
    away = abs(now - at)
    if away < 1:
        return "now"
    said = span(away)
    return f"{said} ago" if at < now else f"in {said}"


def span(seconds: float) -> str:
    """A duration in its largest unit: 59s, 3m, 23h, 400d."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return "0s"
