"""Checks the limits on sending to an endpoint.

These are its circuit, its rate limit, its redirects and the order of its deliveries. An object is merged into the
previous one, as a merge patch says; a null inside it resets that value to its default.
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.errors import Invalid
from hookline.model import CircuitPolicy, Ordering, RateLimit
from hookline.validate import api_schema
from hookline.validate.api_schema import or_null
from hookline.validate.names import check_known, did_you_mean
from hookline.validate.numbers import DAY_S, number, whole

SLOWEST, FASTEST = 0.001, 10_000
MOST_BURST = 10_000
MOST_REDIRECTS = 3

RATE_LIMIT_SCHEMA = api_schema.named(
    "RateLimitInput",
    api_schema.object_of(
        per_second=api_schema.number(SLOWEST, FASTEST),
        burst=or_null(api_schema.whole(1, MOST_BURST)),
    ),
)
CIRCUIT_SCHEMA = api_schema.named(
    "CircuitInput",
    api_schema.object_of(
        consecutive_failures=or_null(api_schema.whole(1, 1_000)),
        failure_rate=or_null(api_schema.number(0.01, 1)),
        window_s=or_null(api_schema.number(1, DAY_S)),
        min_attempts=or_null(api_schema.whole(1, 10_000)),
        cooldown_s=or_null(api_schema.number(0.1, DAY_S)),
        max_cooldown_s=or_null(api_schema.number(0.1, DAY_S)),
    ),
)

_DEFAULT_CIRCUIT = CircuitPolicy()
_SECONDS = " of seconds"
_PERIODS = {"per_minute": 60.0, "per_hour": 3_600.0}


def max_redirects(value: Any) -> int:
    """How many redirects are followed."""
    return whole(0 if value is None else value, 0, MOST_REDIRECTS, pointer="/max_redirects")


def ordering(value: Any) -> Ordering:
    """Whether deliveries may overtake each other."""
    try:
        return Ordering(Ordering.PARALLEL if value is None else value)
    except ValueError:
        near = did_you_mean(value, Ordering) if isinstance(value, str) else ""
        raise Invalid(f'ordering is "parallel" or "strict".{near}', pointer="/ordering") from None


def rate_limit(value: Any, *, before: RateLimit | None = None) -> RateLimit | None:
    """How fast an endpoint may be sent to; None: as fast as it answers."""
    if value is None:
        return None
    shape = f"{{per_second ({SLOWEST:g} to {FASTEST:,}), burst (1 to {MOST_BURST:,})}} or null"
    if not isinstance(value, Mapping):
        near = ""
        if isinstance(value, int | float) and not isinstance(value, bool) and SLOWEST <= value <= FASTEST:
            near = f' Did you mean {{"per_second": {value:g}}}?'
        raise Invalid(f"rate_limit is {shape}.{near}", pointer="/rate_limit")
    for name, given in value.items():
        if name in _PERIODS and isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
            raise Invalid(
                f"rate_limit is {shape}. {given:g} {name.replace('_', ' ')} is "
                f'{{"per_second": {given / _PERIODS[name]:.4g}}}.',
                pointer=f"/rate_limit/{name}",
                code="unknown_field",
            )
    check_known(value, ("per_second", "burst"), at="/rate_limit")
    per_second = value.get("per_second", before.per_second if before else None)
    if per_second is None:
        raise Invalid(f"rate_limit is {shape}; per_second is missing.", pointer="/rate_limit/per_second")
    rate = number(per_second, SLOWEST, FASTEST, pointer="/rate_limit/per_second")
    # By default, one second's worth may go at once.
    burst = value.get("burst", before.burst if before else None)
    if burst is None:
        burst = max(1, math.ceil(rate))
    return RateLimit(float(rate), whole(burst, 1, MOST_BURST, pointer="/rate_limit/burst"))


def circuit(value: Any, *, before: CircuitPolicy | None = None) -> CircuitPolicy | None:
    """When the circuit trips; None: never."""
    if value is None:
        return None
    names = CircuitPolicy.__struct_fields__
    if not isinstance(value, Mapping):
        raise Invalid(
            f"circuit is an object with {', '.join(names)}, or null for no circuit.", pointer="/circuit"
        )
    check_known(value, names, at="/circuit")
    old = before or _DEFAULT_CIRCUIT
    said = {name: value[name] for name in value if value[name] is not None}
    reset = {name: getattr(_DEFAULT_CIRCUIT, name) for name in value if value[name] is None}
    merged = msgspec.structs.asdict(old) | reset | said
    if "cooldown_s" in said and "max_cooldown_s" not in said and _is_number(said["cooldown_s"]):
        merged["max_cooldown_s"] = max(merged["max_cooldown_s"], said["cooldown_s"])
    checked = CircuitPolicy(
        consecutive_failures=whole(
            merged["consecutive_failures"], 1, 1_000, pointer="/circuit/consecutive_failures"
        ),
        failure_rate=float(number(merged["failure_rate"], 0.01, 1, pointer="/circuit/failure_rate")),
        window_s=float(number(merged["window_s"], 1, DAY_S, pointer="/circuit/window_s", unit=_SECONDS)),
        min_attempts=whole(merged["min_attempts"], 1, 10_000, pointer="/circuit/min_attempts"),
        cooldown_s=float(
            number(merged["cooldown_s"], 0.1, DAY_S, pointer="/circuit/cooldown_s", unit=_SECONDS)
        ),
        max_cooldown_s=float(
            number(merged["max_cooldown_s"], 0.1, DAY_S, pointer="/circuit/max_cooldown_s", unit=_SECONDS)
        ),
    )
    if checked.max_cooldown_s < checked.cooldown_s:
        raise Invalid(
            f"max_cooldown_s is not below cooldown_s ({checked.cooldown_s:g}).",
            pointer="/circuit/max_cooldown_s",
        )
    return checked


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) and not isinstance(value, bool)  # of any size, even too large for a float
