"""An own event shows its object as the API does, or what is known of it."""

from types import SimpleNamespace

import msgspec
import pytest

from factories import NOW, an_alert, ids
from hookline import rfc3339
from hookline.ids import show
from hookline.reports.alerts import alert_report
from hookline.reports.own_events import OWN_EVENTS, SUBJECTS, OwnEvents
from hookline.reports.queries import Reports
from hookline.store.contract import Announcement
from hookline.store.contract.measuring.alerts import AlertChanges
from hookline.testing.clock import ManualClock
from scenes import an_endpoint_in

pytestmark = pytest.mark.anyio


def an_announcement(kind, *, subject=None, account="acme", detail=None):
    return Announcement(n=1, kind=kind, account=account, subject=subject, detail=detail, at=NOW)


@pytest.fixture
def own_events(store):
    return OwnEvents(store, reports_of(store), ManualClock())


def reports_of(store):
    async def of(lanes):
        return SimpleNamespace(in_flight=lambda _: 0)

    owners = SimpleNamespace(of=of, here=SimpleNamespace(circuit_of=lambda _: None))
    return Reports(store, owners, shown=lambda at: at)


async def payload(own_events, announcement):
    [found] = await own_events.payloads([announcement])
    return msgspec.json.decode(found)


def test_every_kind_is_about_something_known():
    assert {kind.partition(".")[0] for kind in OWN_EVENTS} <= SUBJECTS.keys()


async def test_it_shows_the_object_without_its_secret(store, own_events):
    endpoint = await an_endpoint_in(store, account="acme", headers={"authorization": "Bearer x"})
    told = await payload(own_events, an_announcement("circuit.opened", subject=endpoint.id))
    assert (told["type"], told["account"], told["at"]) == (
        "circuit.opened",
        "acme",
        rfc3339.show(NOW),
    )
    assert told["data"]["id"] == show("endpoint", endpoint.id)
    assert told["data"]["headers"] == {"authorization": "***"}
    assert "secret" not in told["data"]


@pytest.mark.parametrize(("kind", "noun"), [("delivery.dead", "delivery"), ("endpoint.disabled", "endpoint")])
async def test_of_an_object_that_is_gone_it_tells_what_is_known(own_events, kind, noun):
    id = ids.event()
    told = await payload(own_events, an_announcement(kind, subject=id, detail="rejected"))
    assert told["data"] == {"id": show(noun, id), "account": "acme", "reason": "rejected"}


async def test_an_alert_is_shown_as_the_api_shows_it(store, own_events):
    alert = an_alert(account=None)
    await store.write_alerts(AlertChanges(fire=(alert,)), now=NOW)
    told = await payload(own_events, an_announcement("alert.fired", subject=alert.id, account=None))
    assert told["account"] is None
    assert told["data"] == msgspec.to_builtins(alert_report(alert, shown=lambda at: at))


async def test_what_only_a_newer_process_knows_is_told_without_an_object(own_events):
    told = await payload(own_events, an_announcement("comet.seen", subject=ids.event(), detail="bright"))
    assert (told["type"], told["data"]) == ("comet.seen", {"account": "acme", "reason": "bright"})
