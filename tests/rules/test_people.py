"""Who is told of what, in which words, and how often it is tried."""

import msgspec
import pytest

from hookline.model import OWN_ACCOUNT, AlertKind, Notify
from hookline.rules.people import (
    DEAD,
    FIRED,
    GIVE_UP_S,
    LONGEST_WAIT_S,
    NAMED_ALERTS,
    NAMED_DELIVERIES,
    NAMED_ENDPOINTS,
    RESOLVED,
    Channel,
    Deaths,
    EndpointDeaths,
    Recipient,
    about_alert,
    about_alerts,
    about_deaths,
    gathered,
    recipients,
    wait_before,
)

OPS = Recipient(Channel.EMAIL, "ops@hookline.example", OWN_ACCOUNT)
ACME_MAIL = Recipient(Channel.EMAIL, "dev@acme.example", "acme")
ACME_SLACK = Recipient(Channel.SLACK, "https://chat.example/x", "acme")
ACME_HOOK = Recipient(Channel.WEBHOOK, "https://acme.example/x", "acme")
NOTIFIED = {
    OWN_ACCOUNT: Notify(email=OPS.address),
    "acme": Notify(email=ACME_MAIL.address, slack=ACME_SLACK.address, webhook=ACME_HOOK.address),
    "other": Notify(email="dev@other.example"),
}


@pytest.mark.parametrize(
    ("kind", "account", "told"),
    [
        (FIRED, "acme", [OPS, ACME_MAIL, ACME_SLACK, ACME_HOOK]),
        (RESOLVED, "acme", [OPS, ACME_MAIL, ACME_SLACK, ACME_HOOK]),
        (DEAD, "acme", [ACME_MAIL, ACME_SLACK, ACME_HOOK]),
        (FIRED, None, [OPS]),  # about the installation: owners of accounts are told of their own
        (FIRED, "silent", [OPS]),
        (DEAD, "silent", []),
        (DEAD, None, []),
        (DEAD, OWN_ACCOUNT, []),
        ("circuit.opened", "acme", []),  # an alert tells of it
        ("endpoint.disabled", "acme", []),
    ],
)
def test_who_is_told(kind, account, told):
    assert recipients(kind, account, NOTIFIED) == told


def test_who_is_an_operator_and_the_owner_is_told_once_as_an_operator():
    same = {OWN_ACCOUNT: Notify(email="a@b.example"), "acme": Notify(email="a@b.example")}
    assert recipients(FIRED, "acme", same) == [Recipient(Channel.EMAIL, "a@b.example", OWN_ACCOUNT)]


def test_waits_double_up_to_half_an_hour():
    waits = [wait_before(tries, age=0.0, asked=None, roll=0.5) for tries in (1, 2, 3, 6, 7, 8, 10_000)]
    assert waits == [30, 60, 120, 960, 1800, 1800, 1800]


def test_messages_that_failed_together_are_not_tried_again_together():
    assert [wait_before(1, age=0.0, asked=None, roll=roll) for roll in (0.0, 1.0)] == [22.5, 37.5]


@pytest.mark.parametrize(
    ("asked", "wait"), [(None, 30), (0.0, 30), (10.0, 30), (90.0, 90), (86_400.0, LONGEST_WAIT_S)]
)
def test_a_receiver_may_ask_for_a_longer_wait_within_limits(asked, wait):
    assert wait_before(1, age=0.0, asked=asked, roll=0.5) == wait


def test_what_is_old_is_given_up_however_often_it_was_tried():
    assert wait_before(1, age=GIVE_UP_S, asked=None, roll=0.5) is None
    assert wait_before(1_000, age=GIVE_UP_S - 1, asked=None, roll=0.5) is not None


def some_deaths(count=1, **fields):
    endpoint = EndpointDeaths(place="a.example/hook", count=count, answer="503")
    given = {
        "count": count,
        "first_at": "2026-11-18T10:00:00Z",
        "last_at": "2026-11-18T10:05:00Z",
        "endpoints": {"ep_1": endpoint},
        "deliveries": ("dlv_1",),
    }
    return Deaths(**given | fields)


def test_deaths_are_added_up():
    other = EndpointDeaths(place="an endpoint", count=2, answer=None)
    newer = EndpointDeaths(place="a.example/hook", count=3, answer="500")
    found = gathered(
        [
            some_deaths(4),
            some_deaths(
                5,
                first_at="2026-11-18T09:00:00Z",
                last_at="2026-11-18T11:00:00Z",
                endpoints={"ep_1": newer, "ep_2": other},
                deliveries=tuple(f"dlv_{n}" for n in range(2, 20)),
            ),
        ]
    )
    assert (found.count, found.first_at, found.last_at) == (
        9,
        "2026-11-18T09:00:00Z",
        "2026-11-18T11:00:00Z",
    )
    assert found.endpoints == {
        "ep_1": EndpointDeaths(place=newer.place, count=7, answer="500"),
        "ep_2": other,
    }
    assert found.deliveries == tuple(f"dlv_{n}" for n in range(1, NAMED_DELIVERIES + 1))


def test_a_message_about_one_death():
    message = about_deaths("acme", some_deaths())
    assert message.subject == "[hookline] 1 delivery of acme could not be delivered"
    assert message.text == (
        "1 delivery of account acme could not be delivered, at 2026-11-18T10:00:00Z.\n"
        "\n"
        "1  a.example/hook (ep_1), last answer: 503\n"
        "\n"
        "It is kept as a dead letter and can be replayed when the receiver works again."
    )
    assert (message.data["type"], message.data["data"]["count"]) == ("deliveries.dead", 1)


def test_a_message_about_many_names_the_worst_endpoints():
    many = {f"ep_{n}": EndpointDeaths(place=f"a.example/{n}", count=n, answer=None) for n in range(1, 31)}
    message = about_deaths("acme", some_deaths(465, endpoints=many))
    assert message.subject == "[hookline] 465 deliveries of acme could not be delivered"
    lines = message.text.splitlines()
    assert lines[2] == "30  a.example/30 (ep_30)"
    assert lines[2 + NAMED_ENDPOINTS] == "and 10 more endpoints"
    assert len(message.data["data"]["endpoints"]) == NAMED_ENDPOINTS
    assert (message.data["data"]["count"], message.data["data"]["endpoints"]["ep_30"]["count"]) == (465, 30)


def an_alert_event(kind=AlertKind.CIRCUIT_OPEN, *, type=FIRED, **fields):
    alert = {
        "id": "alt_1",
        "kind": kind.value,
        "account": "acme",
        "endpoint_id": "ep_1",
        "state": "firing",
        "since": "2026-11-18T10:00:00Z",
        "resolved_at": None,
        "message": "The circuit of a.example is open: 5 failures in a row.",
    }
    return {"type": type, "at": "2026-11-18T10:00:01Z", "account": "acme", "data": alert | fields}


def test_an_operator_reads_what_to_do_next_and_an_owner_does_not():
    event = an_alert_event()
    message = about_alert(event, is_for_operators=True)
    assert message.subject == "[hookline] Alert: The circuit of a.example is open: 5 failures in a row."
    assert message.text == (
        "The circuit of a.example is open: 5 failures in a row.\n"
        "\n"
        "alert:    circuit_open\n"
        "account:  acme\n"
        "endpoint: ep_1\n"
        "since:    2026-11-18T10:00:00Z\n"
        "\n"
        "Next step: hookline endpoints recover ep_1"
    )
    assert message.data == event
    assert "Next step" not in about_alert(event, is_for_operators=False).text


@pytest.mark.parametrize("kind", AlertKind)
def test_every_kind_has_a_next_step(kind):
    endpoint = None if kind in (AlertKind.OLDEST_DUE, AlertKind.QUEUE_GROWING) else "ep_1"
    text = about_alert(an_alert_event(kind, endpoint_id=endpoint), is_for_operators=True).text
    assert "Next step: hookline " in text
    assert "{" not in text


def test_a_resolved_alert_says_so():
    event = an_alert_event(type=RESOLVED, resolved_at="2026-11-18T10:09:00Z")
    message = about_alert(event, is_for_operators=True)
    assert message.subject.startswith("[hookline] Resolved: The circuit")
    assert "resolved: 2026-11-18T10:09:00Z" in message.text
    assert "Next step" not in message.text


@pytest.mark.parametrize("data", [{}, {"kind": "newer"}, {"reason": "gone", "id": "alt_1"}])
def test_an_alert_that_is_gone_or_unknown_has_a_message_too(data):
    message = about_alert({"type": FIRED, "data": data}, is_for_operators=True)
    assert message.subject.startswith("[hookline] Alert: ")


def test_several_alerts_are_one_message():
    events = [an_alert_event(message=f"The circuit of {name} is open.") for name in "ab"]
    over = an_alert_event(
        type=RESOLVED, message="The circuit of c is open.", resolved_at="2026-11-18T10:09:00Z"
    )
    message = about_alerts([*events, over], is_for_operators=True)
    assert message.subject == "[hookline] 2 alerts, 1 resolved. Alert: The circuit of a is open."
    assert [part.splitlines()[0] for part in message.text.split("\n\n----\n\n")] == [
        "The circuit of a is open.",
        "The circuit of b is open.",
        "Resolved: The circuit of c is open.",
    ]
    assert about_alerts([over, over], is_for_operators=True).subject.startswith(
        "[hookline] 2 resolved. Resolved:"
    )
    assert about_alerts(events[:1], is_for_operators=True) == about_alert(events[0], is_for_operators=True)


def test_a_message_about_very_many_alerts_stays_readable():
    message = about_alerts([an_alert_event()] * 1_000, is_for_operators=True)
    assert message.subject.startswith("[hookline] 1,000 alerts. Alert: ")
    assert message.text.count("----") == NAMED_ALERTS
    assert message.text.endswith("and 950 more: hookline alerts --all")


def test_a_subject_is_one_short_line_whatever_a_receiver_said():
    event = an_alert_event(message="x\r\nBcc: everybody@example.com\u2028" + "y" * 500)
    subject = about_alert(event, is_for_operators=True).subject
    assert subject.isprintable()
    assert len(subject) <= 170


def test_deaths_survive_being_stored():
    stored = msgspec.json.encode(some_deaths(3))
    assert msgspec.json.decode(stored, type=Deaths) == some_deaths(3)
