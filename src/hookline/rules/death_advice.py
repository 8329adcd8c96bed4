"""Advises what to change in hookline or at the receiver so that deliveries stop dying.

The advice is one or two sentences with the commands to run, each between backticks.
"""

import re

import msgspec

from hookline.model import ErrorKind, Reason
from hookline.rules.death_pattern import OUTAGE_LEAST, DeathCause, Pattern
from hookline.rules.retry import PRESETS, Policy

FIRST_RATE = 5.0  # requests per second to begin with, where no limit is set
LEAST_RATE = 0.001  # requests per second that a limit may be
SHORT_TIMEOUT = 10.0  # seconds; a receiver that answers at all has mostly answered by then
LONGEST_TIMEOUT = 60.0  # seconds that an endpoint may have
FEW = OUTAGE_LEAST  # fewer dead letters show no pattern

_WEEK = 7 * 86_400.0
_PLAIN_NAME = re.compile("[A-Za-z0-9_-]{1,40}")  # of a header: needs no quotes, and tells a person something
_CREDENTIALS = re.compile("auth|key|token|secret|password|credential|cookie", re.IGNORECASE)
_WORDS = {
    ErrorKind.DNS: "its host name does not resolve",
    ErrorKind.TLS: "the TLS handshake fails; its certificate may be invalid or expired",
    ErrorKind.CONNECT_REFUSED: "it refuses connections",
    ErrorKind.CONNECT_TIMEOUT: "connecting to it takes too long",
    ErrorKind.CONNECT_FAILED: "connecting to it fails",
    ErrorKind.TIMEOUT: "it does not answer in time",
    ErrorKind.RESET: "it closes connections without an answer",
    ErrorKind.PROTOCOL: "its answers are not valid HTTP",
    ErrorKind.BLOCKED_ADDRESS: "its address is not allowed",
    ErrorKind.INTERNAL: "hookline itself failed",
}


class AdvisedEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What the advice needs to know about the endpoint."""

    id: str  # as it is shown
    is_deleted: bool = False
    is_failing: bool = False  # its circuit is not closed
    headers: tuple[str, ...] = ()  # their names
    per_second: float | None = None  # its rate limit
    timeout: float = 10.0
    retry: Policy = PRESETS["patient"]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in the dead letters of an endpoint."""

    pattern: Pattern
    causes: tuple[tuple[DeathCause, int], ...]  # each with its dead letters, the commonest first
    newest: str  # the newest that died of the commonest cause, as it is shown
    window: str  # such as 24h
    window_s: float

    @property
    def count(self) -> int:
        return sum(number for _, number in self.causes)


def advice(found: Diagnosis, endpoint: AdvisedEndpoint) -> str:
    """What to do about it."""
    if endpoint.is_deleted:
        return (
            f"The endpoint is deleted, so they cannot be replayed. Discard them: {_discard(found, endpoint)}."
        )
    cause, _ = found.causes[0]
    match found.pattern:
        case Pattern.OUTAGE:
            return _outage(found, endpoint, cause)
        case Pattern.CREDENTIALS:
            return _credentials(found, endpoint, cause)
        case Pattern.THROTTLED:
            return _throttled(found, endpoint)
        case Pattern.INTERMITTENT:
            return _intermittent(found, endpoint, cause)
        case Pattern.REJECTED:
            return _rejected(found, endpoint, cause)
        case Pattern.GONE:
            return (
                f"The receiver said that it will not come back (410). Discard them: {_discard(found, endpoint)}. "
                f"If it has moved, set its new URL: {_update(endpoint, '--to URL')}, then "
                f"`hookline endpoints enable {endpoint.id}`."
            )
        case Pattern.MIXED:
            return _mixed(found, endpoint, cause)


def answer_in_words(cause: DeathCause) -> str:
    """The answer to the last attempt: `503`, `timeout`, or the reason where there was none."""
    if cause.reason is Reason.CRASH_LIMIT:
        return cause.reason.value
    if cause.status is not None:
        return str(cause.status)
    return cause.reason.value if cause.error is None else cause.error.value


def _outage(found: Diagnosis, endpoint: AdvisedEndpoint, cause: DeathCause) -> str:
    lead = f"Looks like an outage at the receiver: {_failure(cause)}."
    if endpoint.is_failing:
        lead += " It still fails."
    test = f"Test it, and replay them once it answers: {_test(endpoint)}, then {_replay(found, endpoint)}."
    return f"{lead} {test}{_longer(endpoint, 'A longer retry schedule survives longer outages')}"


def _credentials(found: Diagnosis, endpoint: AdvisedEndpoint, cause: DeathCause) -> str:
    lead = f"Its credentials were refused ({answer_in_words(cause)})"
    replay = f"then {_replay(found, endpoint)}"
    if header := _credentials_header(endpoint):
        renew = _update(endpoint, f"--header '{header}: VALUE'")
        return f"{lead}. Renew the {header} header: {renew}, {replay}."
    renew = _update(endpoint, "--header 'authorization: VALUE'")
    return (
        f"{lead}, and the endpoint sends no header for them. If the receiver checks the signature, compare the secret: "
        f"`hookline endpoints secret {endpoint.id}`. If it wants a header, set it: {renew}, {replay}."
    )


def _throttled(found: Diagnosis, endpoint: AdvisedEndpoint) -> str:
    if endpoint.per_second is None:
        lead = "It is sent more than it takes (429). Set a rate limit"
        rate = FIRST_RATE
    else:
        lead = f"It takes less than {endpoint.per_second:g} requests per second (429). Set a lower rate limit"
        rate = max(endpoint.per_second / 2, LEAST_RATE)
    return f"{lead}: {_update(endpoint, f'--rate {rate:g}')}, then {_replay(found, endpoint)}."


def _intermittent(found: Diagnosis, endpoint: AdvisedEndpoint, cause: DeathCause) -> str:
    lead = f"It fails now and then: {_failure(cause)}."
    change = _longer(endpoint, "More attempts get past it")
    if cause.error is ErrorKind.TIMEOUT and endpoint.timeout > SHORT_TIMEOUT:
        shorter = _update(endpoint, f"--field timeout_ms={SHORT_TIMEOUT * 1000:.0f}")
        change = f" A shorter timeout tries again sooner: {shorter}."
    return f"{lead}{change} Replay them: {_replay(found, endpoint)}."


def _rejected(found: Diagnosis, endpoint: AdvisedEndpoint, cause: DeathCause) -> str:
    status = cause.status or 0
    replay = f"then {_replay(found, endpoint)}"
    match status:
        case 404 | 405:
            what = "knows nothing at this URL" if status == 404 else "takes no POST at this URL"
            return f"It {what} ({status}). Correct the URL: {_update(endpoint, '--to URL')}, {replay}."
        case 413:
            lead = "It does not take payloads of this size (413): raise its limit, or publish less."
        case _ if 300 <= status < 400:
            return (
                f"It redirects to another URL ({status}). See which: {_show(found)}. Set that one: "
                f"{_update(endpoint, '--to URL')}, {replay}."
            )
        case _ if status >= 500:
            retried = _update(endpoint, """--field retry_statuses='["5xx",408,425,429]'""")
            return (
                f"It fails with {status}, which this endpoint does not retry. Retry it: {retried}, {replay}."
            )
        case _:
            lead = (
                f"It does not accept these payloads ({answer_in_words(cause)}), and did not at the first attempt: "
                "correct them at the publisher, or the receiver that refuses them."
            )
    return f"{lead} Read its answer: {_show(found)}."


def _mixed(found: Diagnosis, endpoint: AdvisedEndpoint, cause: DeathCause) -> str:
    if found.causes[0][1] * 2 > found.count:
        if cause.reason is Reason.CRASH_LIMIT:
            return (
                "A worker died each time it sent these. Read its log for the cause, such as too little memory, and one "
                f"of the payloads: {_show(found)}."
            )
        if cause.error is ErrorKind.BLOCKED_ADDRESS:
            return (
                "hookline does not send to its address (blocked_address): it is private or reserved. Correct the URL: "
                f"{_update(endpoint, '--to URL')}, or allow its network with HOOKLINE_ALLOW_NETWORKS."
            )
        if cause.error is ErrorKind.INTERNAL:
            return (
                f"hookline itself failed to send these. Read the server's log, and the error: {_show(found)}."
            )
    if len(found.causes) > 1:
        parts = [f"{number:,} of {answer_in_words(each)}" for each, number in found.causes[:3]]
        others = found.count - sum(number for _, number in found.causes[:3])
        parts += [f"{others:,} of other causes"] if others else []
        died = f"{', '.join(parts[:-1])} and {parts[-1]}"
        return f"No single cause: {died} died. See each: `hookline dead list --endpoint {endpoint.id}`."
    failure = _failure(cause)
    lead = failure[0].upper() + failure[1:]
    if found.count < FEW:
        return f"{lead}. {_too_few(found, endpoint)}"
    slow = ""
    if cause.error is ErrorKind.TIMEOUT:
        more = _update(
            endpoint, f"--field timeout_ms={min(endpoint.timeout * 2, LONGEST_TIMEOUT) * 1000:.0f}"
        )
        slow = f" Let it answer before it does the work, or give it more time than {endpoint.timeout:g} s: {more}."
    return (
        f"{lead}, again and again, in no single outage. Tell those who run it.{slow} "
        f"Look at the newest: {_show(found)}."
    )


def _too_few(found: Diagnosis, endpoint: AdvisedEndpoint) -> str:
    few = "1 dead letter is" if found.count == 1 else f"{found.count} dead letters are"
    which = "it" if found.count == 1 else "the newest"
    further = ""
    if found.window_s < _WEEK:
        further = f", or look further back: `hookline dead analyse --endpoint {endpoint.id} --window 7d`"
    return f"{few} too few for a pattern. Look at {which}: {_show(found)}{further}."


def _failure(cause: DeathCause) -> str:
    if cause.status is not None:
        return f"it answers {cause.status}"
    words = "its attempts fail" if cause.error is None else _WORDS.get(cause.error, "its attempts fail")
    return f"{words} ({answer_in_words(cause)})"


def _longer(endpoint: AdvisedEndpoint, why: str) -> str:
    """The next longer schedule, if there is one."""
    for preset in ("patient", "standard"):
        policy = PRESETS[preset]
        if policy.attempts > endpoint.retry.attempts and policy.longest > endpoint.retry.longest:
            return f" {why}: {_update(endpoint, f'--retry {preset}')}."
    return ""


def _credentials_header(endpoint: AdvisedEndpoint) -> str | None:
    plain = sorted(name for name in endpoint.headers if _PLAIN_NAME.fullmatch(name))
    named = [name for name in plain if _CREDENTIALS.search(name)]
    return named[0] if named else plain[0] if len(plain) == 1 else None


def _update(endpoint: AdvisedEndpoint, change: str) -> str:
    return f"`hookline endpoints update {endpoint.id} {change}`"


def _test(endpoint: AdvisedEndpoint) -> str:
    return f"`hookline endpoints test {endpoint.id}`"


def _replay(found: Diagnosis, endpoint: AdvisedEndpoint) -> str:
    return f"`hookline dead replay --endpoint {endpoint.id} --since {found.window}`"


def _discard(found: Diagnosis, endpoint: AdvisedEndpoint) -> str:
    return f"`hookline dead discard --endpoint {endpoint.id} --since {found.window}`"


def _show(found: Diagnosis) -> str:
    return f"`hookline dead show {found.newest}`"
