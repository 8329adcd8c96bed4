"""Checks what a commit may change.

Called after every verb of the store with the rows that it changed, before and after. Each check names its invariant.
"""

import json
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.ids import event_of, show
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft, Published
from hookline.rules.circuit import SOONEST_PROBE
from hookline.rules.crash_suspects import CRASH_LIMIT
from hookline.rules.fanout import matches
from hookline.rules.latency_samples import WIDTH, unpack
from hookline.rules.lifecycle import MOVES
from hookline.rules.liveness import patience
from hookline.rules.retry import Policy, policy_of
from hookline.rules.retry_after import LONGEST_ASKED
from hookline.store.contract import EVERY_ENDPOINT, Settlement, Verdict
from tests.sim.clock import EPOCH, TICK

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.receivers import Receipt
    from tests.sim.shadow import Change, Row
    from tests.sim.store import Call
    from tests.sim.world import World

T = TypeVar("T")

ENDED = ("delivered", "dead", "cancelled")
CIRCUIT_MOVES = {("closed", "open"), ("open", "half_open"), ("half_open", "closed"), ("half_open", "open")}
# The write that opened it may still be travelling: the store was away for longer than the circuit stays open.
CIRCUIT_MOVES.add(("closed", "half_open"))
TRANSITIONS = tuple(sorted(f"{state.value}-{verb.value}" for state, verb in MOVES))
SLACK = 0.002  # seconds; the usual error of clocks that follow the store's


class Commits:
    """The checks of a commit, and what they remember."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.rows = world.database.shadow.rows
        self.draws: list[float] = []
        self.acknowledgements: dict[bytes, Published] = {}
        self.deliveries_of: dict[tuple[bytes, bytes], bytes] = {}  # event, endpoint -> delivery
        self.ended_at: dict[bytes, float] = {}
        self._changed_at: dict[bytes, float] = {}  # deliveries and endpoints, by their last change
        self.moved_at: dict[bytes, float] = {}  # when an operator last changed a delivery
        self.shut_at: dict[bytes, float] = {}  # endpoints that may not be sent to, since when
        self.caps: dict[bytes, list[tuple[float, int]]] = defaultdict(list)
        self._limits: dict[bytes, list[tuple[float, dict[str, float] | None]]] = defaultdict(list)
        self.secrets: dict[bytes, list[tuple[float, str]]] = defaultdict(list)
        self.resets: dict[
            bytes, int
        ] = {}  # the number of the change by which an operator last closed a circuit
        self.circuit_at: dict[bytes, float] = {}  # of the last written change of state or probe
        self.lane_log: dict[bytes, deque[str]] = defaultdict(lambda: deque(maxlen=8))
        self.lost: dict[tuple[bytes, bytes], tuple[float, str]] = {}  # lane, worker -> when and by which verb
        self.buried: set[bytes] = set()
        self._heard_at: dict[bytes, float] = {}  # workers, by their last beat
        self.written_at: dict[bytes, float] = {}  # deliveries, by their first commit
        self.reordered: set[bytes] = set()  # endpoints whose order was ever changed
        self.started_of: dict[bytes, list[Receipt]] = defaultdict(list)  # by delivery
        self.keys: dict[tuple[str, str], bytes] = {}
        self.pruned: dict[str, int] = defaultdict(int)
        self.pruned_of: dict[bytes, int] = defaultdict(int)  # deliveries, by event
        self.pruned_events: set[bytes] = set()
        self._counting = 0  # attempts that count, also of deliveries that were pruned
        self._measured = 0  # attempts in a log or in a minute
        self._fence: dict[bytes, tuple[bytes | None, int]] = {}
        self._before: dict[bytes, Row] = {}
        self._accounts: dict[bytes, str] = {}  # of events, also of those that are gone
        self._numbers: dict[tuple[bytes, int], int] = {}  # of the last attempt that counts, by life

    def _fail(self, invariant: str, detail: str) -> None:
        self._world.fail(invariant, detail)

    @property
    def _now(self) -> float:
        return self._world.loop.time()

    # --- the verb ---

    def before(self, call: "Call") -> None:
        """Record what the fence and the settlements depend on, before the verb."""
        if call.name in ("take", "take_these"):
            since = call.process.leaving_since
            if since is not None and call.began > since + 0.1:
                self._fail("I24 drain", f"{call.process.name} takes lanes after it was asked to leave")
        if call.name == "settle":
            self._fence = {id: (lane["owner"], lane["epoch"]) for id, lane in self.rows["lanes"].items()}
            rows = self.rows["deliveries"]
            self._before = {
                each.attempt.delivery_id: rows[each.attempt.delivery_id]
                for each in call.args[1]
                if each.attempt.delivery_id in rows
            }

    def after(self, call: "Call", result: Any, changes: "list[Change]") -> None:
        """Check everything that the verb changed."""
        if call.name == "settle" and result is not None:
            self._settled(call, result)
        events: list[Row] = []
        for change in changes:
            match change.table:
                case "deliveries":
                    self._delivery(call, change)
                case "lanes":
                    self._lane(call, change)
                case "endpoints":
                    self._endpoint(change)
                case "attempts":
                    self._attempt(call, change)
                case "events":
                    if change.new is not None and change.old is None:
                        events.append(change.new)
                        self._accounts[change.new["id"]] = change.new["account"]
                    elif change.new is None and change.old is not None:
                        self._pruned_event(change.old)
                case "workers":
                    self._worker(change)
                case "changes":
                    if change.new is not None and change.new["kind"] == "reset":
                        self.resets[change.new["endpoint_id"]] = change.new["n"]
                case "idempotency":
                    self._key(change)
                case "outbox_refused":
                    if change.new is not None:
                        self._world.checks.outbox.refused(change.new)
                case "latency_log" | "latency_minutes":
                    self._measured += _measured(change.new) - _measured(change.old)
        for event in events:
            self._accepted(event)
        self._world.checks.outbox.stored(events)
        if call.name == "drop_from_outbox":
            self._world.checks.outbox.dropped(call)
        if self._measured != self._counting:
            self._fail("I25 measured", f"{self._counting} attempts count, {self._measured} are measured")
        if call.name == "prune":
            self._conserved()
        if call.name == "mark" and any(not self.rows["deliveries"][id]["marks"] for id in result or ()):
            self._fail("I6 crash budget", "a suspect was marked, and carries no mark")

    def _worker(self, change: "Change") -> None:
        """I22: a worker heard of within the lease is not buried, whatever any clock says, and a buried one does not return.

        It is buried sooner only if it lost its session and had time to begin another.
        """
        row = change.new
        if row is None:
            return
        id = row["id"]
        if change.old is None and id in self.buried:
            self._fail("I9 fencing", "a worker that was buried is registered again")
        if row["buried_at"] is None:
            self._heard_at[id] = self._now
        elif id not in self.buried:
            self.buried.add(id)
            silent = self._now - self._heard_at.get(id, self._now)
            takeover = self._world.settings.takeover_s
            is_gone = self._world.database.sessions.free_for(id) >= patience(takeover) - SLACK
            if silent < takeover - SLACK and not is_gone:
                self._fail(
                    "I22 clock independence", f"a worker was buried {silent:.3f} s after its last beat"
                )

    # --- accepting ---

    def _accepted(self, event: "Row") -> None:
        """I1: one delivery for each endpoint that is enabled and subscribed, by the rows of this commit."""
        wanted = {
            id
            for id, row in self.rows["endpoints"].items()
            if row["account"] == event["account"]
            and row["enabled"]
            and any(matches(pattern, event["type"]) for pattern in json.loads(row["events"]))
        }
        got = [endpoint for (id, endpoint) in self.deliveries_of if id == event["id"]]
        if set(got) != wanted or len(got) != len(wanted):
            self._fail("I1 no loss", f"an event has {len(got)} deliveries, {len(wanted)} endpoints want it")
        key = event["idempotency_key"]
        if key is not None and self.keys.get((event["account"], key)) != event["id"]:
            self._fail("I16 idempotent accept", f"an event was stored without its key {key}")

    def _key(self, change: "Change") -> None:
        row = change.new or change.old
        assert row is not None
        name = (row["account"], row["key"])
        if change.new is None:
            self.keys.pop(name, None)
        elif self.keys.setdefault(name, row["event_id"]) != row["event_id"]:
            self._fail("I16 idempotent accept", f"the key {name} stands for another event now")

    def acknowledged(self, draft: Draft, published: Published) -> None:
        """I1, I2, I16: what was answered is committed once, unchanged."""
        event = self.rows["events"].get(published.id)
        if event is None:
            if published.id not in self.pruned_events:
                self._fail("I1 no loss", f"{show('event', published.id)} was acknowledged and is not stored")
            return
        if (event["type"], event["payload"], event["account"]) != (draft.type, draft.payload, draft.account):
            self._fail("I3 no invention", f"{show('event', published.id)} is stored otherwise than published")
        if event["idempotency_key"] != draft.idempotency_key:
            self._fail("I16 idempotent accept", "an event is stored under another key than its draft's")
        first = self.acknowledgements.setdefault(published.id, published)
        if (first.deliveries, first.created_at) != (published.deliveries, published.created_at):
            self._fail("I16 idempotent accept", "one event was answered in two ways")

    def conflicted(self, draft: Draft) -> None:
        """I16: a conflict is answered only if the key belongs to another event."""
        id = self.keys.get((draft.account, draft.idempotency_key or ""))
        event = None if id is None else self.rows["events"].get(id)
        if event is not None and (event["type"], event["payload"], event["deliver_at"]) == (
            draft.type,
            draft.payload,
            draft.deliver_at,
        ):
            self._fail("I16 idempotent accept", f"{draft.idempotency_key} was refused, and is the same")

    # --- deliveries ---

    def _delivery(self, call: "Call", change: "Change") -> None:
        old, new = change.old, change.new
        if new is None:
            assert old is not None
            self._pruned(call, old)
        elif old is None:
            self._changed_at[new["id"]] = self._now
            self.deliveries_of[event_of(new["id"]), new["endpoint_id"]] = new["id"]
            self.written_at[new["id"]] = self._now
            if (new["state"], new["attempts"], new["replays"]) != ("pending", 0, 0):
                self._fail("I4 lifecycle", "a delivery does not begin at its beginning")
        else:
            self._changed_at[new["id"]] = self._changed_at[new["endpoint_id"]] = self._now
            self._moved(call, old, new)

    def _moved(self, call: "Call", old: "Row", new: "Row") -> None:
        was, now = old["state"], new["state"]
        verb: str | None = None
        if was in ENDED:
            if now == "pending" and new["replays"] == old["replays"] + 1 and new["attempts"] == 0:
                verb = "redrive"
            elif (was, now, new["reason"]) == ("dead", "cancelled", "discarded"):
                verb = "discard"
            elif call.name != "condemn" or was != now:  # a repeat, its first answer lost
                self._fail("I4 terminal is final", f"{call.name} took a delivery from {was} to {now}")
                return
        elif now == "pending":
            if new["replays"] != old["replays"]:
                self._fail("I4 lifecycle", f"{call.name} began a new life of a pending delivery")
            if new["attempts"] == old["attempts"] + 1:
                verb = "retry_later"
            elif new["attempts"] != old["attempts"]:
                self._fail("I6 attempt bound", f"attempts went from {old['attempts']} to {new['attempts']}")
            elif new["due_at"] < old["due_at"] or call.name == "retry":
                verb = "retry"
        else:
            verb = {"delivered": "deliver", "dead": "bury", "cancelled": "cancel"}[now]
        if now == "dead" and new["reason"] == "crash_limit" and old["marks"] < CRASH_LIMIT:
            self._fail("I6 crash budget", f"a delivery with {old['marks']} marks is given up")
        if now in ENDED and was == "pending":
            self.ended_at[new["id"]] = self._now
        if verb in ("retry", "cancel", "redrive", "discard"):
            self.moved_at[new["id"]] = self._now
        if verb is not None:
            self.passed(f"{was}-{verb}")
        if verb in ("deliver", "retry_later") and call.name != "settle":
            self._fail("I9 fencing", f"{call.name} settled a delivery")

    def passed(self, transition: str) -> None:
        self._world.transitions[transition] += 1
        for fault in self._world.faults.background():
            self._world.matrix.add((fault, transition))

    def _pruned(self, call: "Call", old: "Row") -> None:
        """I21: only old, finished deliveries are pruned."""
        before = call.keywords.get("dead_before" if old["state"] == "dead" else "done_before")
        if old["state"] not in ENDED or before is None or old["done_at"] >= before:
            self._fail("I21 retention", f"{call.name} deleted a delivery that is {old['state']}")
        event = event_of(old["id"])
        self.deliveries_of.pop((event, old["endpoint_id"]), None)
        self.pruned[self._accounts[event]] += 1
        self.pruned_of[event] += 1

    def _pruned_event(self, old: "Row") -> None:
        self.pruned_events.add(old["id"])
        self._world.checks.outbox.pruned(old["id"])
        self.acknowledgements.pop(old["id"], None)

    def _conserved(self) -> None:
        """I18: what was pruned is counted in the same commit."""
        counted = {account: row["deliveries"] for account, row in self.rows["pruned"].items()}
        if {account: count for account, count in counted.items() if count} != self.pruned:
            self._fail("I18 conservation", f"pruned {dict(self.pruned)}, counted {counted}")

    # --- settling ---

    def _settled(self, call: "Call", verdicts: list[Verdict]) -> None:
        worker, batch = call.args[0], call.args[1]
        for settlement, verdict in zip(batch, verdicts, strict=True):
            attempt = settlement.attempt
            before = self._before.get(attempt.delivery_id)
            is_ours = self._fence.get(settlement.endpoint_id) == (worker, settlement.epoch)
            is_open = (
                before is not None
                and before["state"] == "pending"
                and before["attempts"] == attempt.number - 1
                and before["replays"] == attempt.replays
            )
            if verdict is Verdict.APPLIED and not (is_ours and worker not in self.buried and is_open):
                self._fail("I9 fencing", f"{call.process.name} settled what is not its own, or not open")
            if verdict is Verdict.LATE and is_ours and worker not in self.buried and is_open:
                self._fail("I5 delivered", f"{call.process.name} owns the lane, and its settlement was late")
            if verdict is Verdict.APPLIED:
                self._applied(call.process, settlement)

    def _applied(self, process: "Process", settlement: Settlement) -> None:
        attempt = settlement.attempt
        after = self.rows["deliveries"][attempt.delivery_id]
        if after["state"] != settlement.state.value or after["attempts"] != attempt.number:
            self._fail("I5 delivered", "a settlement was applied, and the delivery says otherwise")
        endpoint = self.rows["endpoints"].get(settlement.endpoint_id)
        receipt = self._receipt_of(process, settlement)
        status = attempt.status
        if (settlement.state is State.DELIVERED) != (
            status is not None and 200 <= status < 300 and attempt.error is None
        ):
            self._fail(
                "I5 delivered", f"{settlement.state.value} after status {status}, error {attempt.error}"
            )
        if status is not None and not _has_answered(receipt, status):
            self._fail("I5 delivered", f"status {status} is settled, and nobody answered so")
        if endpoint is None or endpoint["retry"] is None:
            return
        policy = policy_of(json.loads(endpoint["retry"]), Policy((0.0,)))
        if attempt.number > policy.attempts:
            self._fail("I6 attempt bound", f"attempt {attempt.number} of {policy.attempts}")
        if settlement.state is State.PENDING:
            self._due(process, settlement, policy, None if receipt is None else receipt.asked)

    def _receipt_of(self, process: "Process", settlement: Settlement) -> "Receipt | None":
        """The request behind an attempt: the last one of its number by this process."""
        attempt = settlement.attempt
        for receipt in reversed(self.started_of[attempt.delivery_id]):
            if receipt.process is process and receipt.number == attempt.number:
                return receipt
        return None

    def _due(self, process: "Process", settlement: Settlement, policy: Policy, asked: float | None) -> None:
        """I10: the wait follows the policy and is not shorter than the receiver asked."""
        attempt = settlement.attempt
        wait = settlement.due_at - (attempt.at + attempt.duration)
        usual = policy.waits[attempt.number] if attempt.number < policy.attempts else 0.0
        least, most = usual * (1 - policy.jitter.below), usual * (1 + policy.jitter.above)
        slack = SLACK + 2 * process.skew
        hinted = attempt.status in (429, 503)
        if asked is not None and hinted and wait < min(asked, LONGEST_ASKED) - slack:
            self._fail("I10 retry order", f"due after {wait:.3f} s, {asked:g} s were asked for")
        if wait < least - slack or (wait > most + slack and not hinted):
            self._fail("I10 retry order", f"due after {wait:.3f} s, the policy says {least:g} to {most:g}")
        if policy.jitter.below == 1.0 and not policy.jitter.above and not hinted and process.skew < 0.01:
            self.draws.append(wait / usual)

    def _attempt(self, call: "Call", change: "Change") -> None:
        """I6, I10: attempts that count are numbered 1, 2, 3 … in each life."""
        row = change.new
        if row is None:
            return
        if row["error"] == "internal":
            self._fail("unexpected", f"an attempt failed by our own fault: {row['error_detail']}")
        if row["error"] == "connect_failed":  # receivers here refuse, reset or hang: only a shortage ends so
            self._fail("shortage", f"an endpoint is charged for our own: {row['error_detail']}")
        if row["late"]:
            return
        self._counting += change.old is None
        numbers = self._numbers
        life = (row["delivery_id"], row["replays"])
        if row["number"] != numbers.get(life, 0) + 1:
            self._fail("I10 retry order", f"attempt {row['number']} after {numbers.get(life, 0)}")
        numbers[life] = row["number"]

    # --- lanes and endpoints ---

    def _lane(self, call: "Call", change: "Change") -> None:
        old, new = change.old, change.new
        if old is None or new is None:
            return
        id = new["endpoint_id"]
        self.lane_log[id].append(
            f"{self._now:.3f} {call.process.name} {call.name} owner {old['owner'] and 1}->{new['owner'] and 1} "
            f"wake {old['wake_at'] - EPOCH:.3f}->{new['wake_at'] - EPOCH:.3f} hold {new['hold_until'] - EPOCH:.3f} "
            f"paused {new['paused']}"
        )
        if old["owner"] != new["owner"]:
            if old["owner"] is not None and new["owner"] is not None:
                self._fail("I8 exclusive lane", f"{call.name} took a lane from its owner")
            if new["owner"] is not None:
                self._changed_at[id] = self._now
                if new["epoch"] != old["epoch"] + 1:
                    self._fail("I9 fencing", f"{call.name} gave a lane away in epoch {new['epoch']}")
            else:
                self.lost[id, old["owner"]] = (self._now, call.name)
                if call.name == "free" and new["epoch"] != old["epoch"] + 1:
                    self._fail("I9 fencing", "a freed lane kept its epoch")
        if new["epoch"] < old["epoch"]:
            self._fail("I9 fencing", f"{call.name} took an epoch back")
        if new["wake_at"] > old["wake_at"] and call.name not in ("release", "free"):
            self._fail("no lost wake-up", f"{call.name} put a lane to sleep")
        was, now = old["circuit"], new["circuit"]
        if was != now or old["probe_at"] != new["probe_at"]:
            self.circuit_at[id] = self._now
        if was != now and (was, now) not in CIRCUIT_MOVES and not (now == "closed" and self._may_reset(new)):
            self._fail("I13 circuit", f"{call.name} took a circuit from {was} to {now}")
        if now == "half_open" and (was != now or old["probe_at"] != new["probe_at"]):
            self._probed(call.process, old, new)

    def _may_reset(self, lane: "Row") -> bool:
        """Whether an operator closed it, or the endpoint no longer has a circuit."""
        endpoint = self.rows["endpoints"].get(lane["endpoint_id"])
        return endpoint is None or endpoint["circuit"] is None or lane["applied"] > 0

    def _probed(self, process: "Process", old: "Row", new: "Row") -> None:
        """I13: one probe per cooldown."""
        now = self._world.database.now() + process.skew + TICK
        is_over = old["circuit"] != "closed" and now >= (old["probe_at"] or 0.0)
        # The write that opened it may still be travelling: the store was away for longer than the circuit stays open.
        # A receiver that throttled the probe before may have asked for less than the cooldown.
        least = min(new["cooldown"], SOONEST_PROBE)
        is_unwritten = new["opened_at"] != old["opened_at"] and now >= new["opened_at"] + least
        if not is_over and not is_unwritten:
            self._fail("I13 circuit", "a probe begins before the circuit has been open for its time")

    def unchanged_since(self, row: "Row") -> float:
        """The time of the last write to a delivery, its endpoint, its lane, or a finished delivery of the lane."""
        endpoint = row["endpoint_id"]
        return max(
            self._changed_at[row["id"]], self._changed_at[endpoint], self.circuit_at.get(endpoint, 0.0)
        )

    def was_strict(self, endpoint: bytes) -> bool:
        """Whether its order is strict, or was ever changed."""
        settings = self.rows["endpoints"].get(endpoint)
        return settings is None or settings["ordering"] == "strict" or endpoint in self.reordered

    def limits_since(self, endpoint: bytes, since: float) -> list[dict[str, float] | None]:
        """The rate limits that were in force at any time since then."""
        return _in_force(self._limits[endpoint], since)

    def caps_since(self, endpoint: bytes, since: float) -> list[int]:
        """The limits on requests in flight that were in force at any time since then."""
        return _in_force(self.caps[endpoint], since)

    def _endpoint(self, change: "Change") -> None:
        row = change.new or change.old
        assert row is not None
        id, now = row["id"], self._now
        self._changed_at[id] = now
        if change.new is None:
            self.shut_at.setdefault(id, now)
            self._limits[id].append((now, None))
            return
        if row["enabled"] and not row["paused"]:
            self.shut_at.pop(id, None)
        else:
            self.shut_at.setdefault(id, now)
        if change.old is not None and change.old["ordering"] != row["ordering"]:
            self.reordered.add(id)
        cap = 1 if row["ordering"] == "strict" else row["max_in_flight"]
        if not self.caps[id] or self.caps[id][-1][1] != cap:
            self.caps[id].append((now, cap))
        if change.old is None or change.old["rate_limit"] != row["rate_limit"]:
            self._limits[id].append(
                (now, None if row["rate_limit"] is None else json.loads(row["rate_limit"]))
            )
        if not self.secrets[id] or self.secrets[id][-1][1] != row["secret"]:
            self.secrets[id].append((now, row["secret"]))


def _in_force(history: list[tuple[float, T]], since: float) -> list[T]:
    """The values in force at any time since then, the latest last."""
    return [
        value for n, (_, value) in enumerate(history) if n + 1 == len(history) or history[n + 1][0] >= since
    ]


def _has_answered(receipt: "Receipt | None", status: int) -> bool:
    """Whether the endpoint gave this answer and it arrived; unknown for an endpoint that lies."""
    return receipt is not None and (receipt.replied is None or (receipt.seen and receipt.replied == status))


def _measured(row: "Row | None") -> int:
    """How many attempts a row of a log or of a minute has; the sum of all endpoints counts none once more."""
    if row is None:
        return 0
    if "samples" not in row:
        return 0 if row["endpoint_id"] == EVERY_ENDPOINT else int(row["attempts"])
    _, words, _ = unpack(row["samples"])
    return len(words) // WIDTH - (row["late"].count(",") + 1 if row["late"] else 0)
