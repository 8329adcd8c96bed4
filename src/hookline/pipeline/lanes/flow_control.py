"""Decides when a lane may send.

Its circuit, its rate limit and the rests that receivers ask for are decided in memory and exactly: a lane has one
owner. What must survive the owner is stored with the settlement that changed it.
"""

from collections import deque
from collections.abc import Callable, Container

from hookline.model import FOREVER, LONG_AGO, Circuit, Endpoint, EndpointId, Outcome
from hookline.pipeline.lanes.circuit_breaker import CircuitBreaker
from hookline.rules import limits
from hookline.store.contract import Taken

_SAMPLES = 10  # of the last response times; the rules look at three
_LONGEST_REST = 300.0  # seconds a whole lane rests for one Retry-After
_LONG = 5.0  # seconds of rest that make it worth letting a lane go
_QUIET = 60.0  # seconds for which a note that the store refuses is not tried again


class FlowControl:
    """What holds an owned lane back."""

    __slots__ = (
        "_bucket",
        "_dead_until",
        "_endpoint",
        "_endpoint_id",
        "_now",
        "_quiet_until",
        "_very_slow",
        "applied",
        "breaker",
        "durations",
        "hold_until",
        "is_plain",
        "rest_until",
        "version",
        "written",
    )

    def __init__(
        self,
        taken: Taken,
        endpoint: Endpoint | None,
        *,
        now: Callable[[], float],
        very_slow: Container[EndpointId],
    ) -> None:
        self._now = now
        self._endpoint = endpoint
        self._endpoint_id = taken.endpoint_id
        self._very_slow = very_slow
        self.breaker = CircuitBreaker(taken.circuit, endpoint, now=now)
        self.hold_until = taken.hold_until
        self.applied = taken.applied
        self.durations: deque[float] = deque(maxlen=_SAMPLES)
        self.version = 0  # counts changes that are to be written down
        self.written = 0
        self._quiet_until = LONG_AGO  # the store refuses what is to be written: not tried before this
        self._dead_until = LONG_AGO
        # Nobody asks for longer; a row that says so is not to be believed.
        self.rest_until = min(taken.rest_until, now() + _LONGEST_REST)
        self._bucket: limits.Bucket | None = None
        if endpoint is not None and endpoint.rate_limit is not None:
            known = taken.tokens is not None and taken.tokens_at is not None
            self._bucket = (
                limits.Bucket(taken.tokens or 0.0, taken.tokens_at or 0.0)
                if known
                else limits.full(endpoint.rate_limit, now=now())
            )
        self.is_plain = False
        self._settle_down()

    @property
    def is_dirty(self) -> bool:
        """Has something changed that is not written down, and may be?"""
        return self.version != self.written and self._quiet_until <= self._now()

    def wrote(self, version: int) -> None:
        """It is written down, as it was then."""
        self.written = version
        self._quiet_until = LONG_AGO

    def refused(self) -> bool:
        """The store refuses what is to be written down: it is left alone for a while. Says whether this is new."""
        is_new = self._quiet_until == LONG_AGO
        self._quiet_until = self._now() + _QUIET
        return is_new

    def now(self) -> float:
        """The store's time."""
        return self._now()

    @property
    def circuit(self) -> Circuit:
        return self.breaker.circuit

    @property
    def bucket(self) -> limits.Bucket | None:
        return self._bucket

    def follow(self, endpoint: Endpoint | None) -> None:
        """The endpoint was changed: its limits hold from now on."""
        self._endpoint = endpoint
        limit = None if endpoint is None else endpoint.rate_limit
        if limit is None:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = limits.full(limit, now=self._now())
        if self.breaker.follow(endpoint):
            self.reset(self.applied)
        self._settle_down()

    # The clock moves between two readings: whoever compares with "now" reads it once.

    def opens_at(self) -> float:
        """When the lane may send; not later than now: it may. Forever: not by time alone."""
        if self.is_plain:
            return LONG_AGO
        now = self._now()
        if not self.breaker.is_closed:
            return self._token_at(now) if self.breaker.is_granted else FOREVER
        opens = max(self.hold_until, self._token_at(now))
        if opens <= now:
            self._settle_down()
        return opens

    def _token_at(self, now: float) -> float:
        """When the rate limit lets one more through."""
        limit = None if self._endpoint is None else self._endpoint.rate_limit
        if self._bucket is None or limit is None:
            return LONG_AGO
        return limits.next_at(self._bucket, limit, now=now)

    def looks_again_at(self) -> float:
        """When time alone may have changed whether the lane may send, or may be probed."""
        if not self.breaker.is_closed and not self.breaker.is_granted:
            # A probe is a request like any other to the rate limit, and is not announced before it may be sent.
            return max(self.probes_at(), self._token_at(self._now()))
        return self.opens_at()

    def is_held_back(self) -> bool:
        """Will the lane be unable to send for a while, so that it may as well be let go?"""
        return not self.is_plain and (
            self.wants_no_probe_yet() or (self.hold_until > self._now() + _LONG and not self.is_probing)
        )

    def wants_no_probe_yet(self) -> bool:
        """Is the circuit open, and its cooldown not over?"""
        return not self.breaker.is_closed and not self.breaker.is_granted and self._now() < self.probes_at()

    def wants_probe(self) -> bool:
        """Is the circuit open, its cooldown over, a token there, and no probe under way?"""
        if self.breaker.is_closed or self.breaker.is_granted:
            return False
        now = self._now()
        return now >= self.probes_at() and now >= self._token_at(now)

    def probes_at(self) -> float:
        """When the circuit's next probe may go: after the cooldown, and not while the receiver wants to be left alone."""
        return max(self.breaker.cooldown_until, self.rest_until)

    @property
    def is_probing(self) -> bool:
        return self.breaker.is_granted

    def begin_probe(self) -> None:
        """One probe may be sent, once this is written down; nobody else's before its time is over."""
        self.hold_until = self.breaker.begin_probe()
        self.changed()

    def grant_probe(self) -> None:
        """The probe is written down: let one delivery through."""
        self.breaker.is_granted = True

    def spend(self) -> bool:
        """A request is admitted; says whether it is the circuit's probe."""
        if self.is_plain:
            return False
        limit = None if self._endpoint is None else self._endpoint.rate_limit
        if self._bucket is not None and limit is not None:
            self._bucket = limits.take(self._bucket, limit, now=self._now()) or self._bucket
        return self.breaker.is_granted

    @property
    def is_untroubled(self) -> bool:
        """Is there nothing that one more success could change?"""
        return self.is_plain and not self.breaker.circuit.failures

    def landed(self, outcome: Outcome, *, duration: float, asked: float | None, was_probe: bool) -> bool:
        """An attempt was answered; says whether that opened or closed the circuit."""
        self.durations.append(duration)
        if outcome is Outcome.ACCEPTED and self.is_untroubled:
            self.breaker.count_success()
            return False
        now = self._now()
        was_closed = self.breaker.is_closed
        is_slow = self._endpoint_id in self._very_slow
        if self.breaker.landed(outcome, is_slow=is_slow, now=now, asked=asked, was_probe=was_probe):
            self.changed()
        if was_probe and self.breaker.policy is not None:
            self.hold_until = self.probes_at()
        elif was_closed and not self.breaker.is_closed:
            self.hold_until = max(self.hold_until, self.breaker.cooldown_until)
        if outcome is Outcome.THROTTLED and asked is not None:
            self.rest_until = max(self.rest_until, now + min(asked, _LONGEST_REST))
            self.hold_until = max(self.hold_until, self.rest_until)
            self.changed()
        self._settle_down()
        return self.breaker.is_closed is not was_closed

    def hold(self, until: float) -> None:
        """Send nothing before then."""
        self.hold_until = max(self.hold_until, until)
        self.changed()
        self._settle_down()

    def hold_anew(self, until: float) -> None:
        """What the lane's order waited for has moved: send nothing before then, before a probe may be sent, or a dead owner's request ended."""
        self.hold_until = max(until, self.probes_at(), self._dead_until)
        self.changed()
        self._settle_down()

    def wait_out(self, until: float) -> None:
        """What a dead owner sent may be under way until then: send nothing before; known to this owner only."""
        self._dead_until = max(self._dead_until, until)
        self.hold_until = max(self.hold_until, until)
        self._settle_down()

    def reset(self, applied: int) -> None:
        """An operator closed the circuit, by the change of this number; what the receiver asked for still holds."""
        self.breaker.reset()
        self.hold_until = max(self.rest_until, self._dead_until)
        self.applied = max(self.applied, applied)
        self.changed()
        self._settle_down()

    def changed(self) -> None:
        """Something changed that the next owner must know."""
        self.version += 1

    def _settle_down(self) -> None:
        """Is there anything to check at all?"""
        self.is_plain = self.breaker.is_closed and self._bucket is None and self.hold_until <= self._now()
