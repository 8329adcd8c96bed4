"""An alert fires at once, once for each subject, and is resolved after two looks without it."""

import pytest

from hookline.model import OWN_ACCOUNT, Alert, AlertFact, AlertId, AlertKind, EndpointId
from hookline.rules.alerts import STUCK_AFTER_S, AlertThresholds, GrowthSample, decide

NOW = 1_000_000.0
ENDPOINT = EndpointId(b"e" * 16)
URL = "https://example.com/hooks/T0k3n?token=x"
SCHEDULE = 7_200.0
OF_OUTBOXES = {AlertKind.OUTBOX_REFUSED: "", AlertKind.OUTBOX_LATE: "orders"}  # each with its subject
SUBJECTS = {AlertKind.OLDEST_DUE: "", **OF_OUTBOXES}


def judged(facts=(), samples=(), firing=(), *, now=NOW, thresholds=None):
    return decide(
        facts,
        samples,
        firing,
        thresholds=thresholds or AlertThresholds(),
        schedules={ENDPOINT: SCHEDULE},
        now=now,
    )


def a_fact(kind, value=None, *, account="acme", **fields):
    if kind in OF_OUTBOXES:
        source = "orders" if kind is AlertKind.OUTBOX_LATE else None
        return AlertFact(**{"kind": kind, "value": value, "source": source, **fields})
    if kind is not AlertKind.DEAD_LETTERS:
        fields = {"endpoint_id": ENDPOINT, "url": URL, **fields}
    return AlertFact(kind=kind, account=account, value=value, **fields)


def an_alert(kind, subject=None, *, clear_looks=0):
    if subject is None:
        subject = "acme" if kind is AlertKind.DEAD_LETTERS else ENDPOINT.hex()
    return Alert(
        id=AlertId(b"a" * 16), kind=kind, subject=subject, message="", since=NOW, clear_looks=clear_looks
    )


def queue_of(*depths, ages=(900, 600, 300, 0)):
    return [GrowthSample(NOW - back, depth, 0) for depth, back in zip(depths, ages, strict=True)]


def dead_of(*numbers, ages=(900, 600, 300, 0)):
    return [GrowthSample(NOW - back, 0, dead) for dead, back in zip(numbers, ages, strict=True)]


MEASURED = [
    (AlertKind.DEAD_LETTERS, 101, True),
    (AlertKind.DEAD_LETTERS, 100, False),
    (AlertKind.OLDEST_DUE, NOW - 1_800.001, True),
    (AlertKind.OLDEST_DUE, NOW - 1_800.0, False),
    (AlertKind.STUCK, NOW - SCHEDULE - STUCK_AFTER_S - 0.001, True),
    (AlertKind.STUCK, NOW - SCHEDULE - STUCK_AFTER_S, False),
    (AlertKind.ENDPOINT_SLOW, 2.001, True),
    (AlertKind.ENDPOINT_SLOW, 2.0, False),
    (AlertKind.CIRCUIT_OPEN, None, True),
    (AlertKind.ENDPOINT_DISABLED, None, True),
    (AlertKind.OUTBOX_REFUSED, 1, True),
    (AlertKind.OUTBOX_REFUSED, 0, False),
    (AlertKind.OUTBOX_LATE, NOW - 300.001, True),
    (AlertKind.OUTBOX_LATE, NOW - 300.0, False),
]


@pytest.mark.parametrize(("kind", "value", "fires"), MEASURED)
def test_it_fires_above_its_threshold_and_not_at_it(kind, value, fires):
    assert [each.kind for each in judged([a_fact(kind, value)]).fire] == [kind] * fires


@pytest.mark.parametrize("kind", [kind for kind, _, fires in MEASURED if fires])
def test_what_fires_already_does_not_fire_again(kind):
    value = next(value for each, value, fires in MEASURED if each is kind and fires)
    decided = judged([a_fact(kind, value)], firing=[an_alert(kind, SUBJECTS.get(kind))])
    assert (decided.fire, decided.resolve, decided.looks) == ((), (), ())


NEAR = [
    (AlertKind.DEAD_LETTERS, 100, 0),
    (AlertKind.DEAD_LETTERS, 91, 0),
    (AlertKind.DEAD_LETTERS, 90, 1),
    (AlertKind.OLDEST_DUE, NOW - 1_621.0, 0),
    (AlertKind.OLDEST_DUE, NOW - 1_620.0, 1),
    (AlertKind.ENDPOINT_SLOW, 1.81, 0),
    (AlertKind.ENDPOINT_SLOW, 1.8, 1),
    (AlertKind.OUTBOX_REFUSED, 0, 1),
    (AlertKind.OUTBOX_LATE, NOW - 271.0, 0),
    (AlertKind.OUTBOX_LATE, NOW - 270.0, 1),
]


@pytest.mark.parametrize(("kind", "value", "clear"), NEAR)
def test_a_value_that_fired_is_clear_from_90_percent_on(kind, value, clear):
    open_one = an_alert(kind, SUBJECTS.get(kind))
    decided = judged([a_fact(kind, value)], firing=[open_one])
    assert decided.looks == (((open_one.id, 1),) if clear else ())
    assert not decided.fire
    assert not decided.resolve


def test_two_looks_without_it_resolve_it_and_one_with_it_begins_anew():
    once = an_alert(AlertKind.CIRCUIT_OPEN, clear_looks=1)
    assert judged(firing=[an_alert(AlertKind.CIRCUIT_OPEN)]).looks == ((once.id, 1),)
    assert judged(firing=[once]).resolve == (once.id,)
    assert judged([a_fact(AlertKind.CIRCUIT_OPEN)], firing=[once]).looks == ((once.id, 0),)


@pytest.mark.parametrize("clear_looks", [0, 1])
@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize("kind", [AlertKind.QUEUE_GROWING, AlertKind.DEAD_LETTERS_GROWING])
def test_a_missing_sample_neither_fires_nor_resolves(kind, missing, clear_looks):
    samples = [GrowthSample(each.at, each.queue, each.queue) for each in queue_of(400, 300, 200, 100)]
    growing = [GrowthSample(each.at, 500 - each.queue, 500 - each.queue) for each in samples]
    for each in (samples, growing):
        del each[missing]
        decided = judged(samples=each, firing=[an_alert(kind, "", clear_looks=clear_looks)])
        assert (decided.resolve, decided.looks) == ((), ())
        assert not judged(samples=each).fire


GROWING = [
    ((100, 200, 300, 400), (900, 600, 300, 0), True),
    ((100, 200, 300, 400), (960, 540, 360, 60), True),  # as far off as they may be
    ((100, 200, 300, 400), (961, 600, 300, 0), False),
    ((100, 200, 300, 400), (839, 600, 300, 0), False),
    ((100, 200, 300, 400), (900, 600, 300, 61), False),
    ((100, 200, 200, 400), (900, 600, 300, 0), False),  # as many is not more
    ((100, 200, 300, 299), (900, 600, 300, 0), False),
    ((200, 100, 300, 400), (900, 600, 300, 0), False),
    ((97, 98, 99, 100), (900, 600, 300, 0), True),
    ((96, 97, 98, 99), (900, 600, 300, 0), False),  # too short to need workers
]


@pytest.mark.parametrize(("depths", "ages", "fires"), GROWING)
def test_the_queue_grows_if_each_of_four_samples_has_more_than_the_one_before(depths, ages, fires):
    kinds = [each.kind for each in judged(samples=queue_of(*depths, ages=ages)).fire]
    assert kinds == [AlertKind.QUEUE_GROWING] * fires


@pytest.mark.parametrize(
    ("numbers", "fires"), [((0, 1, 2, 3), True), ((0, 0, 1, 2), False), ((3, 2, 1, 0), False)]
)
def test_dead_letters_grow_however_few_they_are(numbers, fires):
    kinds = [each.kind for each in judged(samples=dead_of(*numbers)).fire]
    assert kinds == [AlertKind.DEAD_LETTERS_GROWING] * fires


def test_samples_between_the_four_do_not_matter():
    samples = [*queue_of(100, 200, 300, 400), GrowthSample(NOW - 450, 0, 0)]
    assert [each.kind for each in judged(samples=samples).fire] == [AlertKind.QUEUE_GROWING]


def test_growth_that_ended_is_resolved():
    once = an_alert(AlertKind.QUEUE_GROWING, "", clear_looks=1)
    assert judged(samples=queue_of(400, 300, 200, 100), firing=[once]).resolve == (once.id,)


@pytest.mark.parametrize(
    ("kind", "value", "fires"), [each for each in MEASURED if each[0] not in OF_OUTBOXES]
)
def test_nothing_is_said_about_the_account_of_own_events(kind, value, fires):
    assert judged([a_fact(kind, value, account=OWN_ACCOUNT)]).fire == ()


def test_each_subject_has_its_own_alert():
    other = EndpointId(b"f" * 16)
    facts = [a_fact(AlertKind.CIRCUIT_OPEN), a_fact(AlertKind.CIRCUIT_OPEN, endpoint_id=other)]
    [fired] = judged(facts, firing=[an_alert(AlertKind.CIRCUIT_OPEN)]).fire
    assert (fired.endpoint_id, fired.account) == (other, "acme")


def test_each_outbox_has_its_own_alert_and_it_is_the_operators():
    facts = [
        a_fact(AlertKind.OUTBOX_LATE, NOW - 400),
        a_fact(AlertKind.OUTBOX_LATE, NOW - 400, source="shop"),
    ]
    [fired] = judged(facts, firing=[an_alert(AlertKind.OUTBOX_LATE, "orders")]).fire
    assert (fired.subject, fired.account, fired.endpoint_id) == ("shop", None, None)


def test_the_thresholds_can_be_set():
    thresholds = AlertThresholds(
        dead_letters=5, oldest_due_s=10.0, queue=5, slow_s=0.5, outbox_refused=5, outbox_late_s=10.0
    )
    facts = [
        a_fact(AlertKind.DEAD_LETTERS, 6),
        a_fact(AlertKind.OLDEST_DUE, NOW - 11),
        a_fact(AlertKind.ENDPOINT_SLOW, 0.6),
    ]
    fired = judged(facts, queue_of(2, 3, 4, 5), thresholds=thresholds).fire
    assert [(each.kind, each.value, each.threshold) for each in fired] == [
        (AlertKind.DEAD_LETTERS, 6, 5),
        (AlertKind.OLDEST_DUE, 11, 10),
        (AlertKind.ENDPOINT_SLOW, 0.6, 0.5),
        (AlertKind.QUEUE_GROWING, 5, 5),
    ]


def test_an_endpoint_of_which_no_schedule_is_known_has_nothing_stuck():
    assert judged([a_fact(AlertKind.STUCK, 0.0, endpoint_id=EndpointId(b"x" * 16))]).fire == ()


SENTENCES = [
    (a_fact(AlertKind.DEAD_LETTERS, 1_420), "Account acme has 1,420 dead letters, more than 100."),
    (
        a_fact(AlertKind.OLDEST_DUE, NOW - 2_520),
        "The oldest due delivery is 42 min late; it is for example.com/….",
    ),
    (
        a_fact(AlertKind.STUCK, NOW - 4 * 3_600),
        "A delivery to example.com/… is pending for 4 h, longer than its whole retry schedule.",
    ),
    (
        a_fact(AlertKind.ENDPOINT_SLOW, 3.21),
        "The slowest 5 % of the answers of example.com/… take over 3.2 s; the limit is 2 s.",
    ),
    (
        a_fact(AlertKind.CIRCUIT_OPEN, detail="5 failures in a row"),
        "The circuit of example.com/… is open: 5 failures in a row.",
    ),
    (a_fact(AlertKind.CIRCUIT_OPEN), "The circuit of example.com/… is open."),
    (
        a_fact(AlertKind.ENDPOINT_DISABLED, detail="It answered 410 Gone."),
        "hookline disabled example.com/…: It answered 410 Gone.",
    ),
    (
        a_fact(AlertKind.OUTBOX_REFUSED, 1),
        "1 outbox row was refused: it is not sent until it is retried.",
    ),
    (
        a_fact(AlertKind.OUTBOX_REFUSED, 1_200),
        "1,200 outbox rows were refused: none of them is sent until it is retried.",
    ),
    (a_fact(AlertKind.OUTBOX_LATE, NOW - 720), "The outbox orders is 12 min late."),
    (
        a_fact(AlertKind.OUTBOX_LATE, NOW - 720, source="own"),
        "The outbox of hookline's own database is 12 min late.",
    ),
    (
        a_fact(AlertKind.OUTBOX_LATE, NOW - 720, detail="It cannot be reached."),
        "The outbox orders is 12 min late: It cannot be reached.",
    ),
]


@pytest.mark.parametrize(("fact", "sentence"), SENTENCES)
def test_the_message_is_one_plain_sentence(fact, sentence):
    [fired] = judged([fact]).fire
    assert fired.message == sentence


def test_growth_says_from_where_to_where():
    [queue] = judged(samples=queue_of(100, 200, 300, 4_000)).fire
    assert (
        queue.message
        == "The queue has been growing for 15 min, from 100 to 4,000: more workers may be needed."
    )
    [dead] = judged(samples=dead_of(1, 2, 3, 4)).fire
    assert dead.message == "Dead letters have been growing for 15 min, from 1 to 4."


def test_a_long_url_is_cut():
    [fired] = judged([a_fact(AlertKind.CIRCUIT_OPEN, url=f"https://example.com/{'x' * 2_000}")]).fire
    assert len(fired.message) < 120
