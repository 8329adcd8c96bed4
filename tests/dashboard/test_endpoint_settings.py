"""An endpoint's settings are read as text and changed one at a time; its secret is shown when it is asked for."""

from collections.abc import Iterator

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def reader(service: Service) -> Iterator[Site]:
    site = Site(service.url, key=service.new_key("read"))
    yield site
    site.close()


@pytest.fixture(scope="module")
def stranger(service: Service) -> Iterator[Site]:
    site = Site(service.url, key=service.new_key("read", "publish", "admin", account="stranger"))
    yield site
    site.close()


def opened(site: Site, endpoint: dict, field: str) -> Page:
    return site.get(f"/endpoints/{endpoint['id']}/settings?change={field}")


def form_of(page: Page) -> str:
    """The action of the form that changes a field."""
    [action] = [form.action for form in page.forms if "/settings#" in form.action]
    return action


def save(site: Site, endpoint: dict, field: str, **fields: object) -> Page:
    page = opened(site, endpoint, field)
    return site.submit(page, form_of(page), do="save", **fields)


def now(service: Service, endpoint: dict) -> dict:
    found: dict = service.call("GET", f"/v1/endpoints/{endpoint['id']}")
    return found


def test_all_settings_are_read_as_text(service: Service, site: Site):
    endpoint = service.create(
        "/text",
        events=["*"],
        headers={"authorization": "Bearer very-secret"},
        rate_limit={"per_second": 20},
        circuit=None,
        timeout_ms=2_500,
    )
    page = site.get(f"/endpoints/{endpoint['id']}/settings")
    assert page.h1 == f"Settings of {endpoint['url']}"
    for text in (
        "all events",
        "authorization: ***",
        "20 a second, 20 at once",
        "2.5 s",
        "none: it is always tried",
    ):
        assert text in page.text
    assert "very-secret" not in page.html
    assert endpoint["secret"] not in page.html
    assert {"url", "headers", "rate", "retry", "circuit", "secret"} <= page.ids


def test_every_field_that_a_patch_takes_can_be_changed(service: Service, site: Site):
    from hookline.validate.endpoint_fields import IN_PATCH

    endpoint = service.create("/every", headers={"x-a": "1"}, rate_limit={"per_second": 5})
    before = now(service, endpoint)
    for field in IN_PATCH.values():
        page = opened(site, endpoint, field.name)
        if field.fixed is not None:
            assert not any(
                form.action.startswith(f"/endpoints/{endpoint['id']}/settings") for form in page.forms
            )
            continue
        saved = site.submit(page, form_of(page), do="save")
        assert "saved. It counts from the next attempt on." in saved.text, field.name
    after = now(service, endpoint)
    assert {**after, "updated_at": None} == {**before, "updated_at": None}  # what was shown is what there was


@pytest.mark.parametrize(
    ("field", "fields", "value"),
    [
        (
            "events",
            {"events": "order.paid, refund.*\r\nrefund.created"},
            ["order.paid", "refund.*", "refund.created"],
        ),
        ("description", {"description": "Two\r\nlines"}, "Two\nlines"),
        ("description", {"description": ""}, ""),
        ("filter", {"filter": "id > `1`"}, "id > `1`"),
        ("timeout_ms", {"timeout_ms": "2500"}, 2_500),
        ("max_in_flight", {"max_in_flight": "7"}, 7),
        ("max_redirects", {"max_redirects": "2"}, 2),
        ("ordering", {"ordering": "strict"}, "strict"),
        ("signing", {"signing": "classic"}, "classic"),
        ("paused", {"paused": "yes"}, True),
        ("retry_statuses", {"retry_statuses": "5xx 429, 404"}, ["5xx", 429, 404]),
        ("rate_limit", {"rate_limit.per_second": "0.5"}, {"per_second": 0.5, "burst": 1}),
        ("rate_limit", {"rate_limit.per_second": "", "rate_limit.burst": ""}, None),
        ("circuit", {"circuit.kind": "none"}, None),
        ("retry", {"retry.kind": "preset", "retry.preset": "eight", "retry.jitter": ""}, {"preset": "eight"}),
        (
            "retry",
            {"retry.kind": "schedule", "retry.schedule": "0, 30 5m", "retry.jitter": "none"},
            {"schedule": [0, 30, 300], "jitter": "none"},
        ),
        (
            "retry",
            {
                "retry.kind": "growing",
                "retry.base": "30",
                "retry.factor": "2",
                "retry.cap": "",
                "retry.attempts": "4",
                "retry.jitter": "own",
                "retry.below": "0.1",
                "retry.above": "0.2",
            },
            {
                "base": 30,
                "factor": 2,
                "cap": None,
                "attempts": 4,
                "jitter": {"below": 0.1, "above": 0.2},
            },
        ),
    ],
)
def test_a_field_is_saved_as_it_was_filled_in(service: Service, site: Site, field, fields, value):
    endpoint = service.create("/saved")
    page = save(site, endpoint, field, **fields)
    assert page.status == 200
    assert page.path.startswith(f"/endpoints/{endpoint['id']}/settings")
    assert now(service, endpoint)[field] == value


@pytest.mark.parametrize(
    ("field", "fields", "pointer", "message"),
    [
        ("url", {"url": "ftp://x"}, "/url", "http"),
        ("events", {"events": ""}, "/events", "events is a list of 1 to 100 patterns."),
        ("events", {"events": "order.*, or der!"}, "/events/2", "order.paid"),
        ("timeout_ms", {"timeout_ms": "soon"}, "/timeout_ms", "whole number from 1,000 to 60,000"),
        ("timeout_ms", {"timeout_ms": "9" * 5_000}, "/timeout_ms", "whole number from 1,000 to 60,000"),
        ("rate_limit", {"rate_limit.burst": "3"}, "/rate_limit/per_second", "per_second is missing"),
        ("circuit", {"circuit.failure_rate": "7"}, "/circuit/failure_rate", "from 0.01 to 1"),
        ("metadata", {"metadata": "{nope"}, "/metadata", "This is not JSON"),
        ("metadata", {"metadata": "[1]"}, "/metadata", "metadata is a JSON object."),
        (
            "retry",
            {"retry.kind": "schedule", "retry.schedule": "0, 30, -8"},
            "/retry/schedule/2",
            "from 0 to 2,592,000",
        ),
        (
            "retry_statuses",
            {"retry_statuses": "200"},
            "/retry_statuses/0",
            "A 2xx answer is always accepted.",
        ),
        (
            "headers",
            {"headers.name": ["content-type"], "headers.value": ["x"]},
            "/headers/content-type",
            "set by",
        ),
        ("headers", {"headers.name": ["x-new"], "headers.value": ["***"]}, "/headers/x-new", "hidden value"),
        ("headers", {"headers.name": ["x", "x"], "headers.value": ["1", "2"]}, "/headers/x", "same name"),
    ],
)
def test_the_message_of_the_api_is_beside_its_field(
    service: Service, site: Site, field, fields, pointer, message
):
    endpoint = service.create("/message")
    before = now(service, endpoint)
    page = save(site, endpoint, field, **fields)
    assert page.status == 422
    assert message in page.text
    assert page.html.count('class="err"') == 1
    assert pointer in page.text
    assert now(service, endpoint) == before


def test_what_was_typed_is_still_there_after_a_message(service: Service, site: Site):
    endpoint = service.create("/typed")
    page = save(site, endpoint, "retry", **{"retry.kind": "schedule", "retry.schedule": "0, 30, -8"})
    form = page.form(form_of(page))
    assert ("retry.schedule", "0, 30, -8") in form.fields
    assert "Until that is mended, what is in force:" in page.text


def test_a_header_whose_value_is_hidden_stays_as_it_is(service: Service, site: Site):
    endpoint = service.create(
        "/headers", headers={"authorization": "Bearer one", "x-team": "a"}, events=["head.er"]
    )
    page = opened(site, endpoint, "headers")
    action = form_of(page)
    sent = {
        "headers.name": ["authorization", "x-team", "x-new"],
        "headers.value": ["***", "***", "new"],
        "headers.remove": ["x-team"],
    }
    assert site.submit(page, action, do="save", **sent).status == 200
    assert now(service, endpoint)["headers"] == {"authorization": "***", "x-new": "***"}
    service.publish("head.er")
    delivered = site_until(service, "/headers")
    assert delivered["authorization"] == "Bearer one"
    assert delivered["x-new"] == "new"
    assert "x-team" not in delivered


def site_until(service: Service, path: str) -> dict[str, str]:
    """The headers of the first request that came to a path."""
    import time

    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at:
        for at, headers, _ in service.target.received:
            if at == path:
                return {name.lower(): value for name, value in headers.items()}
        time.sleep(0.02)
    raise AssertionError("nothing came")


def test_metadata_is_what_was_typed_not_merged_with_what_there_was(service: Service, site: Site):
    endpoint = service.create("/meta", metadata={"a": {"b": 1, "c": 2}, "gone": True})
    save(site, endpoint, "metadata", metadata='{"a": {"b": 3}, "new": [1]}')
    assert now(service, endpoint)["metadata"] == {"a": {"b": 3}, "new": [1]}
    save(site, endpoint, "metadata", metadata="")
    assert now(service, endpoint)["metadata"] == {}


def test_a_preview_shows_the_waits_and_changes_nothing(service: Service, site: Site):
    endpoint = service.create("/preview")
    before = now(service, endpoint)
    page = opened(site, endpoint, "retry")
    filled = {
        "retry.kind": "growing",
        "retry.base": "60",
        "retry.factor": "3",
        "retry.cap": "",
        "retry.attempts": "4",
    }
    filled |= {"retry.jitter": "equal"}
    page = site.submit(page, form_of(page), do="preview", **filled)
    assert page.status == 200
    assert "Nothing is saved yet" in page.text
    assert "30 s to 1 min" in page.text
    assert "4 min 30 s to 9 min 13 min, then dead" in page.text
    assert now(service, endpoint) == before
    page = site.submit(page, form_of(page), do="save")
    assert now(service, endpoint)["retry"]["base"] == 60


def test_the_secret_is_shown_when_it_is_asked_for(service: Service, site: Site):
    endpoint = service.create("/secret")
    settings = site.get(f"/endpoints/{endpoint['id']}/settings")
    page = site.submit(settings, f"/endpoints/{endpoint['id']}/secret/show#secret")
    assert endpoint["secret"] in page.text
    assert endpoint["secret"] not in page.url
    assert page.headers["cache-control"] == "no-store"
    assert endpoint["secret"] not in str(site.client.cookies)
    again = site.get(f"/endpoints/{endpoint['id']}/secret/show")
    assert again.path == f"/endpoints/{endpoint['id']}/settings"
    assert endpoint["secret"] not in again.html


def test_a_rotation_asks_first_and_is_done_once(service: Service, site: Site):
    endpoint = service.create("/rotate")
    path = f"/endpoints/{endpoint['id']}/secret/rotate"
    asks = site.get(path)
    assert asks.h1 == f"Rotate the secret of {endpoint['url']}?"
    page = site.submit(asks, path, overlap_s="3600")
    secret = service.call("GET", f"/v1/endpoints/{endpoint['id']}/secret")
    assert secret["old"]["secret"] == endpoint["secret"]
    assert secret["secret"] in page.text
    assert endpoint["secret"] in page.text
    assert "The old one signs as well until" in page.text
    repeated = site.submit(asks, path, overlap_s="3600")
    assert "Nothing was rotated" in repeated.text
    under_way = site.submit(site.get(path), path, overlap_s="3600")
    assert under_way.status == 409
    assert "already being rotated" in under_way.text
    at_once = site.submit(site.get(path), path, overlap_s="0")
    assert "The old one signs no more" in at_once.text
    assert service.call("GET", f"/v1/endpoints/{endpoint['id']}/secret")["old"] is None


@pytest.mark.parametrize(
    ("fields", "pointer"), [({"secret": "short"}, "/secret"), ({"overlap_s": "-1"}, "/overlap_s")]
)
def test_a_rotation_that_cannot_be_says_why(service: Service, site: Site, fields, pointer):
    endpoint = service.create("/refused")
    path = f"/endpoints/{endpoint['id']}/secret/rotate"
    page = site.submit(site.get(path), path, **fields)
    assert page.status == 422
    assert page.html.count('class="err"') == 1
    assert pointer in page.text
    assert service.call("GET", f"/v1/endpoints/{endpoint['id']}/secret")["secret"] == endpoint["secret"]


def test_deleting_asks_first_and_says_what_is_cancelled(service: Service, site: Site):
    endpoint = service.create("/deleted", events=["del.eted"], paused=True)
    service.publish("del.eted")
    path = f"/endpoints/{endpoint['id']}/delete"
    page = site.until(path, lambda page: "1 delivery" in page.text)
    assert "that waits for it is cancelled" in page.text
    assert now(service, endpoint)["id"] == endpoint["id"]
    gone = site.submit(page, path)
    assert gone.path == "/endpoints"
    assert f"{endpoint['url']} is deleted. 1 delivery is cancelled." in gone.text
    assert service.client.get(f"/v1/endpoints/{endpoint['id']}").status_code == 404


def test_who_may_only_read_sees_the_settings_and_changes_nothing(service: Service, reader: Site):
    endpoint = service.create("/reader")
    before = now(service, endpoint)
    one = f"/endpoints/{endpoint['id']}"
    page = reader.get(f"{one}/settings?change=url")
    assert page.status == 200
    assert page.form(f"{one}/secret/show#secret").is_disabled
    assert not any(text.startswith(("Change ", "Add ")) and "/settings?" in href for href, text in page.links)
    assert reader.get(f"{one}/delete").form(f"{one}/delete").is_disabled
    assert reader.get(f"{one}/secret/rotate").form(f"{one}/secret/rotate").is_disabled
    shows = reader.submit(page, f"{one}/secret/show#secret")
    assert shows.status == 403
    assert endpoint["secret"] not in shows.html
    assert reader.submit(reader.get(f"{one}/delete"), f"{one}/delete").status == 403
    assert reader.submit(reader.get(f"{one}/secret/rotate"), f"{one}/secret/rotate").status == 403
    token = dict(page.form(f"{one}/secret/show#secret").fields)["token"]
    refused = reader.post(f"{one}/settings", token=token, field="url", url="https://example.com/", do="save")
    assert refused.status == 403
    assert now(service, endpoint) == before


@pytest.mark.parametrize("page", ["settings", "secret/rotate", "delete"])
def test_what_belongs_to_another_account_is_not_there(service: Service, stranger: Site, page: str):
    endpoint = service.create("/others")
    unknown = "ep_" + "0" * 26
    other, none = (stranger.get(f"/endpoints/{id}/{page}") for id in (endpoint["id"], unknown))
    assert other.status == none.status == 404
    assert masked(other).replace(endpoint["id"], "ID") == masked(none).replace(unknown, "ID")


def masked(page: Page) -> str:
    import re

    return re.sub(r'req_[0-9a-f]+|name="token" value="[^"]*"', "", page.html)


def test_an_account_changes_its_own_and_reads_nothing_of_accounts(service: Service, stranger: Site):
    endpoint = service.create("/own", account="stranger")
    page = stranger.get(f"/endpoints/{endpoint['id']}/settings")
    assert "account" not in page.ids
    save(stranger, endpoint, "description", description="Mine")
    assert now(service, endpoint)["description"] == "Mine"
    page = opened(stranger, endpoint, "url")
    token = dict(page.form(form_of(page)).fields)["token"]
    others = service.create("/others-2")
    refused = stranger.post(
        f"/endpoints/{others['id']}/settings", token=token, field="description", description="x", do="save"
    )
    assert refused.status == 404
    assert now(service, others)["description"] == ""


def test_what_people_wrote_is_text(service: Service, site: Site):
    endpoint = service.create(
        "/hostile", description=HOSTILE, metadata={"note": HOSTILE}, filter="a == '<script>'"
    )
    page = site.get(f"/endpoints/{endpoint['id']}/settings")
    assert HOSTILE in page.text
    assert "<script>alert" not in page.html
    for field in ("description", "metadata", "filter"):
        assert "<script>alert" not in opened(site, endpoint, field).html
    refused = save(site, endpoint, "events", events=HOSTILE)
    assert refused.status == 422
    assert "<script>alert" not in refused.html


def test_a_field_that_is_none_is_refused(service: Service, site: Site):
    endpoint = service.create("/none")
    page = opened(site, endpoint, "url")
    token = dict(page.form(form_of(page)).fields)["token"]
    for field in ("account", "secret", "signature", "nothing", ""):
        answer = site.post(f"/endpoints/{endpoint['id']}/settings", token=token, field=field, do="save")
        assert answer.status == 404
