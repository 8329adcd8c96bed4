"""Says in words why an endpoint fails, by its answers of the last minutes and what its dead letters have in common.

Dead letters tell more, but an endpoint that has failed for a minute has none yet: then its answers decide.
"""

from collections.abc import Mapping

from hookline.rules.death_pattern import Pattern

_REFUSED, _THROTTLED, _GONE = ("401", "403"), "429", "410"
ANSWERS_AGAIN = "It answers again."
GONE_ANSWER = _GONE
_WORDS = {
    Pattern.OUTAGE: "Looks like an outage at the receiver.",
    Pattern.CREDENTIALS: "Its credentials were refused.",
    Pattern.THROTTLED: "It is sent more than it takes.",
    Pattern.INTERMITTENT: "It fails now and then.",
    Pattern.REJECTED: "It does not like these payloads.",
    Pattern.GONE: "It said it will not come back.",
}


def commonest_failure(answers: Mapping[str, int]) -> str | None:
    """The commonest answer that was not accepted: a status, or the error of an attempt without one."""
    failed = {answer: count for answer, count in answers.items() if not _is_accepted(answer)}
    return max(sorted(failed), key=failed.__getitem__) if failed else None


def pattern_of_answers(answers: Mapping[str, int]) -> Pattern | None:
    """What the answers of some minutes look like; None: there was no failure."""
    answer = commonest_failure(answers)
    if answer is None:
        return None
    if answer in _REFUSED:
        return Pattern.CREDENTIALS
    if answer == _THROTTLED:
        return Pattern.THROTTLED
    if answer == _GONE:
        return Pattern.GONE
    if answer.isdigit() and answer.startswith("4"):
        return Pattern.REJECTED
    return Pattern.INTERMITTENT if any(map(_is_accepted, answers)) else Pattern.OUTAGE


def cause(answers: Mapping[str, int], deaths: Pattern | None, *, is_back: bool = False) -> str | None:
    """Why it fails, as a sentence; None: nothing can be said. `is_back`: its last attempt was accepted."""
    pattern = likely_pattern(answers, deaths)
    if pattern is Pattern.OUTAGE and is_back:
        return ANSWERS_AGAIN
    return None if pattern is None else _WORDS.get(pattern)


def likely_pattern(answers: Mapping[str, int], deaths: Pattern | None) -> Pattern | None:
    """What its failures look like: its dead letters tell it unless they differ; None: nothing can be said."""
    return pattern_of_answers(answers) if deaths in (None, Pattern.MIXED) else deaths


def _is_accepted(answer: str) -> bool:
    return len(answer) == 3 and answer.startswith("2")
