"""The metrics of a real server: well formed, stable, and true after a known load."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from answering import eventually, receiving
from hookline.reports.counts import GOOD_FOR
from scraping import families, figures

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
LABELS = {"channel", "code", "kind", "le", "limit", "outcome", "pool", "state", "table", "version"}
KINDS = {"counter", "gauge", "histogram"}
STORED = {"hookline_store_log_bytes", "hookline_store_dead_rows"}  # each store has its own
OF_THE_PROCESS = ("hookline_publish_seconds", "hookline_deliveries_total", "hookline_requests_in_flight")


@pytest.fixture(autouse=True, scope="module")
def counted(service):
    """Figures that are known from now on: on a busy machine the first scrapes do not wait for long enough."""

    def look():
        found = families(text_of(service))
        is_whole = found.keys() & STORED and all(family.samples for family in found.values())
        return True if is_whole else None

    eventually(look)


def text_of(service):
    answer = service.call("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text


def documented():
    """The rows of docs/metrics.md: the name, its label, its type and its meaning."""
    rows = re.findall(
        r"^\| `([a-z_]+)(?:\{([a-z]+)\})?` \| (\w+) \| (process|installation) \| (.+) \|$",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == len({name for name, *_ in rows}) > 0
    return {name: (label, kind, meaning) for name, label, kind, _, meaning in rows}


def scrape(service):
    return figures(text_of(service))


def more(after, before, name):
    return after[name] - before[name]


def test_every_metric_has_a_help_a_type_and_a_name_by_the_rules(service):
    text = text_of(service)
    helped = re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)
    typed = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert helped == [name for name, _ in typed]
    assert len(set(helped)) == len(helped)
    assert {kind for _, kind in typed} <= KINDS
    for name, kind in typed:
        assert re.fullmatch(r"(hookline|process)_[a-z_]+[a-z]", name)
        assert name.endswith("_total") is (kind == "counter"), name
        assert not name.endswith(("_count", "_sum", "_bucket", "_milliseconds", "_ms")), name
    assert {name for name, family in families(text).items() if not family.samples} == set()


def test_the_page_describes_every_metric_and_no_other(service):
    other = "PostgreSQL: " if service.database.startswith("sqlite") else "SQLite: "
    page = {name: row[:2] for name, row in documented().items() if not row[2].startswith(other)}
    real = {
        name: ("".join({label for sample in family.samples for label in sample.labels} - {"le"}), family.type)
        for name, family in families(text_of(service)).items()
    }
    assert page == real


def test_no_label_names_an_account_or_an_endpoint(service):
    delivered = 'hookline_deliveries_total{outcome="delivered"}'
    before = scrape(service)
    with receiving() as receiver:
        service.create(account="acme.labels", url=f"{receiver.url}/200/labels", events=["labels.*"])
        service.publish("labels.one", account="acme.labels")
        eventually(lambda: more(scrape(service), before, delivered) or None)
    text = text_of(service)
    samples = [sample for family in families(text).values() for sample in family.samples]
    assert {label for sample in samples for label in sample.labels} <= LABELS
    assert "acme" not in text
    assert "127.0.0.1" not in text


def test_the_figures_add_up_after_a_known_load(service):
    before = scrape(service)
    with receiving() as receiver:
        service.create(url=f"{receiver.url}/200/sums", events=["sums.good"])
        service.create(url=f"{receiver.url}/404/sums", events=["sums.refused"])
        service.create(
            url=f"{receiver.url}/503/sums",
            events=["sums.failing"],
            retry={"schedule": [0, 0.01, 0.01], "jitter": "none"},
        )
        for _ in range(5):
            service.publish("sums.good")
        for _ in range(3):
            service.publish("sums.refused")
        service.publish("sums.failing")
        service.publish("sums.nobody")
        service.publish("sums.good", idempotency_key="sums-1")
        assert service.publish("sums.good", idempotency_key="sums-1")["duplicate"]
        batch = [{"type": "sums.good", "payload": n} for n in range(4)] + [{"type": "no type", "payload": 1}]
        assert service.call("POST", "/v1/events/batch", {"events": batch}).status_code == 202

        def settled():
            now = scrape(service)
            outcomes = {
                outcome: more(now, before, f'hookline_deliveries_total{{outcome="{outcome}"}}')
                for outcome in ("delivered", "retry", "dead", "late")
            }
            is_quiet = now["hookline_ready"] == 1 and now["hookline_requests_in_flight"] == 0
            is_over = outcomes == {"delivered": 10, "retry": 2, "dead": 4, "late": 0}
            return now if is_over and is_quiet else None

        after = eventually(settled)

    def grown(name):
        return more(after, before, name)

    published = 5 + 3 + 1 + 1 + 2 + 4
    assert grown("hookline_publish_seconds_count") == published
    assert grown('hookline_publish_seconds_bucket{le="+Inf"}') == published
    assert grown("hookline_publish_seconds_sum") > 0
    assert grown("hookline_accept_batch_size_sum") == published
    assert 1 <= grown("hookline_accept_batch_size_count") <= published
    assert grown("hookline_settle_batch_size_sum") == 16
    assert grown("hookline_attempt_duration_seconds_count") == 16
    assert grown("hookline_attempt_duration_seconds_sum") > 0
    assert grown("hookline_end_to_end_seconds_count") == 10
    assert grown("hookline_end_to_end_seconds_sum") > 0
    assert grown('hookline_publish_refused_total{code="invalid_field"}') == 1
    assert sum(grown(name) for name in after if name.startswith("hookline_publish_refused")) == 1
    assert set(after) == set(before), "the same labels before and after"
    assert after["hookline_request_slots"] > 0
    assert after["hookline_lanes_owned"] >= 3
    for name in (
        "hookline_publish_seconds",
        "hookline_attempt_duration_seconds",
        "hookline_end_to_end_seconds",
        "hookline_loop_lag_seconds",
        "hookline_settle_batch_size",
    ):
        buckets = [value for key, value in after.items() if key.startswith(f"{name}_bucket")]
        assert buckets == sorted(buckets)
        assert buckets[-1] == after[f"{name}_count"]

    stored = service.counts()["deliveries"]

    def counted():
        now = scrape(service)
        is_new = now["hookline_accepted_deliveries"] == stored and now["hookline_dead_letters"] == 4
        return now if is_new else None

    after = eventually(counted)
    assert after['hookline_deliveries{state="dead"}'] == 4
    assert after["hookline_pending"] == after['hookline_deliveries{state="pending"}'] == 0
    assert after["hookline_oldest_pending_age_seconds"] == after["hookline_oldest_due_age_seconds"] == 0


def test_every_refused_publish_is_counted_by_its_code_whichever_way_it_took(service):
    def refused(code):
        return scrape(service)[f'hookline_publish_refused_total{{code="{code}"}}']

    def publish(body, path="/v1/events", **headers):
        return service.call("POST", path, body, **headers).json()["code"]

    wrong_key = {"authorization": "Bearer hlk_wrong"}
    service.publish(
        "refusals.key", 1, idempotency_key="refusals"
    )  # answered when it is stored, and refused then
    event = {"type": "refusals.key", "payload": 2}
    for code, asked in {
        "invalid_json": lambda: publish(b"{"),
        "unknown_field": lambda: publish({**event, "colour": 1}),
        "unauthenticated": lambda: publish(event, **wrong_key),
        "unsupported_media_type": lambda: publish(b"x", content_type="text/plain"),
        "idempotency_conflict": lambda: publish({**event, "idempotency_key": "refusals"}),
        "too_many_events": lambda: publish({"events": [event] * 1_001}, "/v1/events/batch"),
    }.items():
        before = refused(code)
        assert asked() == code
        assert refused(code) == before + 1, code
    before = scrape(service)
    assert service.call("POST", "/v1/endpoints", {"colour": 1}).status_code == 422, "no publish"
    after = scrape(service)
    assert [name for name in after if "refused" in name and after[name] != before[name]] == []


@contextmanager
def locked(database: str) -> Iterator[None]:
    """Nobody else can read the deliveries."""
    with psycopg.connect(database) as session:
        session.execute("LOCK TABLE hookline.deliveries IN ACCESS EXCLUSIVE MODE")
        yield
        session.rollback()


def test_a_scrape_of_a_locked_database_says_what_the_process_knows_and_how_old_the_rest_is(service):
    if service.database.startswith("sqlite"):
        return  # a reader of the file waits for nobody
    known = eventually(
        lambda: found if (found := scrape(service))["hookline_counted_age_seconds"] < GOOD_FOR else None
    )
    with locked(service.database):

        def stuck():
            found = scrape(service)
            is_stuck = found["hookline_counted_age_seconds"] > GOOD_FOR
            return found if is_stuck and found['hookline_store_sessions_in_use{pool="figures"}'] else None

        found = eventually(stuck)
        assert found["hookline_accepted_deliveries"] == known["hookline_accepted_deliveries"]
        assert found["hookline_dead_letters"] == known["hookline_dead_letters"]
        assert all(any(name.startswith(each) for name in found) for each in OF_THE_PROCESS)
        assert found.keys() == known.keys()
        older = scrape(service)
        assert older["hookline_counted_age_seconds"] > found["hookline_counted_age_seconds"]
    eventually(lambda: scrape(service)["hookline_counted_age_seconds"] < GOOD_FOR or None)


@pytest.mark.parametrize("pool", ["accept", "settle", "general", "figures"])
def test_the_sessions_of_each_pool_are_shown(service, pool):
    found = scrape(service)
    if service.database.startswith("sqlite"):
        assert not [name for name in found if name.startswith("hookline_store_sessions")]
        return
    assert found[f'hookline_store_sessions{{pool="{pool}"}}'] >= 1
    assert found[f'hookline_store_sessions_in_use{{pool="{pool}"}}'] >= 0
    assert found[f'hookline_store_sessions_waiting{{pool="{pool}"}}'] >= 0
