"""Refuses callers that ask faster than is allowed, and accounts that publish too much.

Each process counts by itself. Without a limit nothing is counted.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from hookline.admin.key_cache import Caller
from hookline.api.problem import Refused
from hookline.api.publishing.envelope import BATCH_LIMIT
from hookline.config import Settings
from hookline.model import RateLimit
from hookline.pipeline.intake.drafts import Draft
from hookline.rules.limits import Bucket
from hookline.rules.quotas import after, for_accounts, for_keys

REMEMBERED = 10_000  # keys, and accounts

_Name = TypeVar("_Name", bytes, str)


class Quotas:
    """What keys and accounts may still do now."""

    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        self._of_keys = _Quota[bytes](for_keys(settings.requests_per_key), now)
        self._of_accounts = _Quota[str](for_accounts(settings.publish_per_account, batch=BATCH_LIMIT), now)
        self.are_set = self._of_keys.is_set or self._of_accounts.is_set

    def count_request(self, holder: bytes) -> None:
        """Count a request of the holder of a key; raises if it came too soon. Whoever needs no key is not counted."""
        if self._of_keys.is_set and holder and (wait := self._of_keys.take({holder: 1})):
            raise _refused("This key has sent more requests than are allowed in a second.", wait)

    def count_events(self, drafts: Sequence[Draft]) -> None:
        """Count a publish; raises if an account has published too much, and then nothing of it is counted."""
        if self._of_accounts.is_set and (wait := self._of_accounts.take(_by_account(drafts))):
            raise _refused("This account has published more events than are allowed in a second.", wait)

    def admits(self, caller: Caller, drafts: Sequence[Draft]) -> bool:
        """Count a publish, with its request and its events; False: something is too much, and nothing was counted."""
        requests, events = {caller.digest: 1} if caller.digest else {}, _by_account(drafts)
        if self._of_keys.wait(requests) or self._of_accounts.wait(events):
            return False
        self._of_keys.take(requests)
        self._of_accounts.take(events)
        return True


class _Quota(Generic[_Name]):
    """A bucket of tokens for each name."""

    def __init__(self, limit: RateLimit | None, now: Callable[[], float]) -> None:
        self._limit = limit
        self._now = now
        self._buckets: dict[_Name, Bucket] = {}

    @property
    def is_set(self) -> bool:
        return self._limit is not None

    def wait(self, wanted: Mapping[_Name, int]) -> float:
        """How many seconds until all that is wanted is there; 0: it is there."""
        return self._looked_at(wanted)[1]

    def take(self, wanted: Mapping[_Name, int]) -> float:
        """Take all that is wanted, or nothing: then how many seconds until it is there."""
        taken, wait = self._looked_at(wanted)
        if not wait:
            for name, bucket in taken.items():
                self._buckets.pop(name, None)
                if len(self._buckets) >= REMEMBERED:
                    del self._buckets[next(iter(self._buckets))]  # the one that was quiet longest
                self._buckets[name] = bucket
        return wait

    def _looked_at(self, wanted: Mapping[_Name, int]) -> tuple[dict[_Name, Bucket], float]:
        if self._limit is None:
            return {}, 0.0
        now, longest = self._now(), 0.0
        taken: dict[_Name, Bucket] = {}
        for name, tokens in wanted.items():
            taken[name], wait = after(self._buckets.get(name), self._limit, tokens=tokens, now=now)
            longest = max(longest, wait)
        return taken, longest


def _by_account(drafts: Sequence[Draft]) -> Counter[str]:
    return Counter(draft.account for draft in drafts)


def _refused(detail: str, wait: float) -> Refused:
    return Refused(
        "rate_limited",
        f"{detail} Try again later.",
        headers=((b"retry-after", b"%d" % math.ceil(wait)),),
    )
