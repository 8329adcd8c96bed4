"""The sentence that says how the installation is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.rules.status_sentence import (
    FailingEndpoint,
    LateOutbox,
    Severity,
    Situation,
    UnreadableOutbox,
    age,
    is_failing,
    judge,
)

NOW = 1_794_957_600.0  # 2026-11-17, 23:20 UTC
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


def situation(**facts) -> Situation:
    return Situation(**{"now": NOW, "as_of": NOW - 2, "active": 1_184, **facts})


def failing(number: int = 1, *, host: str | None = None, **facts) -> tuple[FailingEndpoint, ...]:
    return tuple(
        FailingEndpoint(
            **{
                "id": f"ep_{n}",
                "url": f"https://{host or f'h{n}.example'}/hooks/{n}",
                "account": "default",
                "answer": "503",
                "since": NOW - 58 * MINUTE,
                **facts,
            }
        )
        for n in range(number)
    )


CASES = [
    # told to a customer
    (
        Severity.BAD,
        "2 of your 3 endpoints are failing since 22:22.",
        {"failing": failing(2, answer="dns"), "active": 3, "is_theirs": True},
    ),
    (
        Severity.BAD,
        "1 of your endpoints is failing. Everything else flows.",
        {"failing": failing(1), "active": 30, "is_theirs": True},
    ),
    (Severity.WARNING, "All flows. 2 of your endpoints are slow.", {"slow": 2, "is_theirs": True}),
    (Severity.NEW, "Nothing was sent to you yet.", {"has_events": False, "is_theirs": True}),
    # itself
    (
        Severity.BAD,
        "Nothing is known: the database does not answer.",
        {"is_answering": False, "is_ready": False, "as_of": None},
    ),
    (
        Severity.BAD,
        "Nothing is accepted: the database does not take writes.",
        {"is_ready": False, "workers": 0},
    ),
    (Severity.BAD, "Nothing is being sent: no worker runs.", {"workers": 0}),
    (
        Severity.BAD,
        "Nothing is being sent: no worker has run for 4 min.",
        {
            "workers": 0,
            "worker_seen_at": NOW - 4 * MINUTE,
            "as_of": NOW - 4 * MINUTE,
            "failing": failing(900),
        },
    ),
    (Severity.BAD, "Nothing is known yet: no worker has counted.", {"as_of": None}),
    (Severity.BAD, "Nothing newer is known: the figures are 31 s old.", {"as_of": NOW - 31}),
    (Severity.GOOD, "All is well.", {"as_of": NOW - 30}),
    (
        Severity.BAD,
        "Deliveries are stuck: some wait for longer than their whole retry schedule.",
        {"is_stuck": True, "failing": failing(3)},
    ),
    # many
    (
        Severity.BAD,
        "238 of 1,184 endpoints are failing since 22:22. Look at your own network first.",
        {"failing": failing(238)},
    ),
    (
        Severity.BAD,
        "2 of 2 endpoints are failing since 16 Nov, 22:20.",
        {"failing": failing(2, since=NOW - 25 * HOUR), "active": 2},
    ),
    (
        Severity.BAD,
        "2 of 9 endpoints are failing. Look at your own network first.",
        {"failing": failing(2, since=None, answer="connect_refused"), "active": 9},
    ),
    (
        Severity.BAD,
        "2 of 4 endpoints are failing, the first since 22:10.",
        {
            "failing": (
                *failing(1, answer="401", since=NOW - 70 * MINUTE),
                *failing(1, answer="connect_refused", since=NOW - 5 * MINUTE),
            ),
            "active": 4,
        },
    ),
    (
        Severity.BAD,
        "5 of 9 endpoints are failing since 22:22. Look at your own network first.",
        {"failing": failing(5), "active": 9},
    ),
    # some
    (Severity.BAD, "2 endpoints are failing. Everything else flows.", {"failing": failing(2), "active": 10}),
    (Severity.BAD, "1 endpoint is failing. Everything else flows.", {"failing": failing(1), "active": 1}),
    (Severity.BAD, "236 endpoints are failing. Everything else flows.", {"failing": failing(236)}),
    (Severity.BAD, "1 endpoint is failing. Everything else flows.", {"failing": failing(1), "dead": 9}),
    (
        Severity.BAD,
        "236 endpoints are failing. Everything else flows.",
        {"failing": failing(50), "more_failing": 186},
    ),
    (
        Severity.BAD,
        "237 of 1,184 endpoints are failing since 22:22. Look at your own network first.",
        {"failing": failing(50), "more_failing": 187},
    ),
    # late
    (
        Severity.WARNING,
        "Deliveries are late: the oldest is due since 34 min.",
        {"late_since": NOW - 34 * MINUTE, "is_growing": True, "dead": 4},
    ),
    (
        Severity.WARNING,
        "Deliveries are late: more come in than go out. Start more workers.",
        {"is_growing": True},
    ),
    # left over
    (
        Severity.WARNING,
        "All flows now. 1,412 dead letters are left from yesterday.",
        {"dead": 1_412, "died_at": NOW - DAY, "slow": 1},
    ),
    (Severity.WARNING, "All flows now. 1 dead letter is left from today.", {"dead": 1, "died_at": NOW}),
    (
        Severity.WARNING,
        "All flows now. 2 dead letters are left from 3 Nov.",
        {"dead": 2, "died_at": NOW - 14 * DAY},
    ),
    (Severity.WARNING, "All flows now. 2 dead letters are left.", {"dead": 2}),
    # small
    (Severity.WARNING, "All flows. 1 endpoint is slow.", {"slow": 1}),
    (
        Severity.BAD,
        "1 endpoint is failing. 2 outbox rows were refused and will not be sent unless retried.",
        {"failing": failing(1), "outbox_refused": 2},
    ),
    # what applications published and nobody gets
    (
        Severity.WARNING,
        "1 outbox cannot be read: shop: no answer.",
        {"unreadable_outboxes": (UnreadableOutbox("shop", "no\n \u202eanswer."),), "outbox_refused": 1},
    ),
    (
        Severity.WARNING,
        "2 outboxes cannot be read: hookline's own: no table; and 1 more.",
        {"unreadable_outboxes": (UnreadableOutbox("own", "no table"), UnreadableOutbox("b", "no right"))},
    ),
    (
        Severity.WARNING,
        "The outbox orders is late by 12 min.",
        {"late_outboxes": (LateOutbox("orders", NOW - 12 * MINUTE),), "outbox_refused": 3, "dead": 4},
    ),
    (
        Severity.WARNING,
        "The outbox a is late by 12 min, and 1 more is.",
        {"late_outboxes": (LateOutbox("b", NOW - MINUTE), LateOutbox("a", NOW - 12 * MINUTE))},
    ),
    (
        Severity.WARNING,
        "The outbox a is late by 12 min, and 2 more are.",
        {"late_outboxes": tuple(LateOutbox(each, NOW - 12 * MINUTE) for each in "cab")},
    ),
    (
        Severity.WARNING,
        "1 outbox row was refused and will not be sent unless retried.",
        {"outbox_refused": 1, "dead": 4},
    ),
    (
        Severity.WARNING,
        "1,200 outbox rows were refused and will not be sent unless retried.",
        {"outbox_refused": 1_200},
    ),
    (
        Severity.WARNING,
        "All flows. 2 endpoints are slow and 1 endpoint is disabled.",
        {"slow": 2, "disabled": 1},
    ),
    (Severity.WARNING, "All flows. 3 endpoints are disabled.", {"disabled": 3, "has_events": False}),
    # new
    (Severity.NEW, "Nothing was published yet.", {"has_events": False}),
    (Severity.GOOD, "All is well.", {}),
]


@pytest.mark.parametrize(("level", "headline", "facts"), CASES, ids=[case[1] for case in CASES])
def test_the_headline_is_the_first_rule_that_holds(level, headline, facts):
    said = judge(situation(**facts))
    assert (said.headline, said.level) == (headline, level)


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        ({}, None),
        ({"outbox_refused": 1}, "hookline outbox list"),
        ({"outbox_refused": 1, "failing": failing(1)}, "hookline outbox list"),
        ({"outbox_refused": 1, "workers": 0}, None),
        ({"late_outboxes": (LateOutbox("shop", NOW - 600),)}, "hookline outbox sources"),
        ({"unreadable_outboxes": (UnreadableOutbox("shop", "away"),)}, "hookline outbox sources"),
    ],
)
def test_what_is_said_of_outboxes_has_a_command_that_shows_more(facts, step):
    assert judge(situation(**facts)).step == step


def test_an_outbox_that_cannot_be_read_is_not_healthy_and_its_reason_is_cut():
    said = judge(situation(unreadable_outboxes=(UnreadableOutbox("shop", "many words " * 90),)))
    assert (said.is_healthy, len(said.headline) < 250, said.headline[-2:]) == (False, True, "….")


def test_troubles_are_listed_worst_first_and_no_more_than_five():
    endpoints = tuple(
        FailingEndpoint(
            id=f"ep_{n}", url=f"https://{n}.example/", account="a", answer="503", waiting=n, dead=1
        )
        for n in range(14)
    )
    said = judge(situation(failing=endpoints))
    assert [trouble.name for trouble in said.troubles] == [f"{n}.example/" for n in (13, 12, 11, 10, 9)]
    assert said.more == 9


def test_troubles_of_which_only_the_number_is_known_are_counted():
    assert judge(situation(failing=failing(6), more_failing=3)).more == 4


@pytest.mark.parametrize(
    ("healthy", "facts"),
    [
        (True, {}),
        (True, {"has_events": False}),
        (True, {"slow": 1, "dead": 3}),
        (False, {"failing": failing(1)}),
        (False, {"workers": 0}),
        (False, {"is_growing": True}),
        (False, {"late_since": NOW - MINUTE}),
        (False, {"alerts": 1}),
    ],
)
def test_it_is_healthy_unless_something_fails_is_late_or_raised_an_alert(healthy, facts):
    assert judge(situation(**facts)).is_healthy is healthy


def test_three_endpoints_of_one_host_are_one_trouble():
    endpoints = (*failing(3, host="one.example", waiting=2), *failing(2, host="two.example", waiting=5))
    said = judge(situation(failing=endpoints))
    assert [(trouble.name, len(trouble.endpoints)) for trouble in said.troubles] == [
        ("one.example", 3),
        ("two.example/hooks/0", 1),
        ("two.example/hooks/1", 1),
    ]
    assert said.troubles[0].sentence.startswith(
        "3 endpoints of this host fail. Answers 503 since 22:22, 58 min."
    )


def test_endpoints_of_one_host_that_answer_differently_have_no_cause_in_common():
    common = {"host": "one.example", "cause": "Looks like an outage.", "next_probe_at": NOW + 60}
    endpoints = (
        *failing(2, **common),
        *failing(1, answer="401", **common),
        *failing(1, answer="422", **common),
    )
    [trouble] = judge(situation(failing=endpoints)).troubles
    assert trouble.sentence == (
        "4 endpoints of this host fail since 22:22, 58 min: 503 at 2, 401 at 1, 422 at 1."
    )


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({}, "Answers 503 since 22:22, 58 min."),
        ({"since": None}, "Answers 503."),
        ({"answer": "connect_refused"}, "Ends in connect_refused since 22:22, 58 min."),
        (
            {"cause": "Looks like an outage at the receiver.", "next_probe_at": NOW + 16 * MINUTE + 1},
            "Answers 503 since 22:22, 58 min. Looks like an outage at the receiver. The next try is in 16 min.",
        ),
        ({"next_probe_at": NOW - 5}, "Answers 503 since 22:22, 58 min. The next try is due."),
    ],
)
def test_a_trouble_says_the_answer_since_when_and_what_comes_next(facts, sentence):
    [trouble] = judge(situation(failing=failing(1, **facts))).troubles
    assert trouble.sentence == sentence


def gone(number: int = 1, **facts) -> tuple[FailingEndpoint, ...]:
    return failing(
        number,
        **{
            "host": "old.example",
            "answer": "410",
            "cause": "It said it will not come back.",
            "since": NOW - 3 * HOUR,
            "is_gone": True,
            **facts,
        },
    )


def test_an_endpoint_that_is_gone_is_shown_below_those_that_fail_and_is_no_failure():
    said = judge(situation(failing=failing(1), gone=gone(dead=3), disabled=1))
    assert said.headline == "1 endpoint is failing. Everything else flows."
    assert [trouble.name for trouble in said.troubles] == ["h0.example/hooks/0", "old.example/hooks/0"]
    assert said.troubles[1].sentence == (
        "Answered 410, so it is disabled since 20:20, 3 h. It said it will not come back."
    )
    said = judge(situation(gone=gone(dead=3), dead=3, disabled=1))
    assert (said.level, said.headline) == (Severity.WARNING, "All flows now. 3 dead letters are left.")
    assert len(said.troubles) == 1


def test_endpoints_that_are_gone_take_only_the_places_that_are_left_and_are_not_counted_as_failing():
    said = judge(situation(failing=failing(7), gone=gone(2)))
    assert [each.endpoints[0].is_gone for each in said.troubles] == [False] * 5
    assert said.more == 2
    said = judge(situation(failing=failing(4), gone=gone(3, dead=1)))
    assert [each.endpoints[0].is_gone for each in said.troubles] == [False] * 4 + [True]
    assert said.more == 0


@pytest.mark.parametrize(
    ("closed", "attempts", "accepted", "expected"),
    [
        (False, 0, 0, True),
        (False, 100, 100, True),
        (True, 4, 0, False),
        (True, 5, 2, True),
        (True, 6, 3, False),
        (True, 0, 0, False),
    ],
)
def test_an_endpoint_fails_by_its_circuit_or_its_last_quarter_of_an_hour(
    closed, attempts, accepted, expected
):
    assert is_failing(is_circuit_closed=closed, attempts=attempts, accepted=accepted) is expected


def test_an_endpoint_that_accepted_its_newest_minute_fails_only_by_its_circuit():
    assert not is_failing(is_circuit_closed=True, attempts=9, accepted=1, is_back=True)
    assert is_failing(is_circuit_closed=False, attempts=9, accepted=1, is_back=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (7_199, "119 min"), (7_200, "2 h"), (3 * DAY, "3 days")],
)
def test_an_age_is_said_as_people_say_it(seconds, text):
    assert age(seconds) == text


@given(since=st.floats(allow_nan=False), died=st.floats(allow_nan=False))
def test_any_stored_time_can_be_said(since, died):
    said = judge(situation(failing=failing(2, since=since), active=2))
    assert "failing" in said.headline
    assert "left" in judge(situation(dead=1, died_at=died)).headline
