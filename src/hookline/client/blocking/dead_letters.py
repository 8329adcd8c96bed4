# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Calls about dead letters."""

from datetime import datetime
from typing import Unpack

from hookline.client import call as calls
from hookline.client.answers import Delivery, Job
from hookline.client.blocking.listing import Listing, Sends
from hookline.client.call import step
from hookline.client.dead_letter_filter import DeadLetterFilter
from hookline.client.overview import Analysis
from hookline.client.words import Reason


class DeadLetterMethods(Sends):
    """List, analyse, replay and discard dead letters, one by one or in bulk."""

    def dead_letters(
        self,
        *,
        account: str | None = None,
        endpoint_id: str | None = None,
        event_type: str | None = None,
        reason: Reason | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        replayed: bool | None = None,
    ) -> Listing[Delivery]:
        """List deliveries that were given up; `since` and `until` refer to the time they died."""
        return Listing(
            self,
            "/v1/dead-letters",
            Delivery,
            account=account,
            endpoint_id=endpoint_id,
            event_type=event_type,
            reason=reason,
            since=since,
            until=until,
            replayed=replayed,
        )

    def analyse_dead_letters(
        self, *, window: str | None = None, account: str | None = None, endpoint_id: str | None = None
    ) -> Analysis:
        """What the dead letters of each endpoint have in common, and what to do about it.

        `window` is how far it looks back, such as "15m", "24h" (the default) or "7d".
        """
        return self.send(
            calls.get(
                "/v1/dead-letters/analysis", Analysis, window=window, account=account, endpoint_id=endpoint_id
            )
        )

    def replay_dead_letter(self, delivery_id: str) -> Delivery:
        """Replay a dead letter, from the beginning of its retry schedule."""
        return self.send(calls.post(f"/v1/dead-letters/{step(delivery_id)}/replay", Delivery))

    def discard_dead_letter(self, delivery_id: str) -> Delivery:
        """Discard a dead letter for good."""
        return self.send(calls.post(f"/v1/dead-letters/{step(delivery_id)}/discard", Delivery))

    def replay_dead_letters(
        self,
        *,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **filter: Unpack[DeadLetterFilter],
    ) -> Job:
        """Replay all dead letters that match, as a job that continues after this returns."""
        return self.send(calls.job("/v1/replays", Job, filter, dry_run=dry_run, key=idempotency_key))

    def replay_job(self, id: str) -> Job:
        """Get the progress of a bulk replay."""
        return self.send(calls.get(f"/v1/replays/{step(id)}", Job))

    def replay_jobs(self) -> Listing[Job]:
        """List bulk replays."""
        return Listing(self, "/v1/replays", Job)

    def discard_dead_letters(
        self,
        *,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **filter: Unpack[DeadLetterFilter],
    ) -> Job:
        """Discard all dead letters that match, as a job that continues after this returns."""
        return self.send(calls.job("/v1/discards", Job, filter, dry_run=dry_run, key=idempotency_key))

    def discard_job(self, id: str) -> Job:
        """Get the progress of a bulk discard."""
        return self.send(calls.get(f"/v1/discards/{step(id)}", Job))

    def discard_jobs(self) -> Listing[Job]:
        """List bulk discards."""
        return Listing(self, "/v1/discards", Job)
