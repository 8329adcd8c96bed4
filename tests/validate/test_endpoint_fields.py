"""Which endpoints are valid."""

import math
from typing import Any

import pytest

from hookline.errors import Invalid
from hookline.model import CircuitPolicy, Endpoint, EndpointId, Ordering, RateLimit, Signing
from hookline.validate.endpoint_changes import new_endpoint, patched

ID = EndpointId(bytes(16))
SECRET = "whsec_" + "A" * 32


def an_endpoint(**fields: Any) -> Endpoint:
    fields = {"url": "https://example.com/hooks", "events": ["order.*"], **fields}
    return new_endpoint(fields, id=ID, now=100.0, private_allowed=False)


def a_patch(endpoint: Endpoint, **fields: Any) -> Endpoint:
    return patched(endpoint, fields, now=200.0, private_allowed=False)


def refusal(make: Any, **fields: Any) -> tuple[str, str]:
    with pytest.raises(Invalid) as caught:
        make(**fields)
    return caught.value.code, caught.value.pointer


def test_a_url_and_events_are_enough():
    endpoint = an_endpoint()
    assert endpoint == Endpoint(
        id=ID,
        account="default",
        url="https://example.com/hooks",
        events=("order.*",),
        secret=endpoint.secret,
        created_at=100.0,
        updated_at=100.0,
    )
    assert endpoint.secret.startswith("whsec_")
    assert an_endpoint().secret != endpoint.secret


def test_every_field_is_kept():
    endpoint = an_endpoint(
        account="acme",
        events=["a.b", "a.b", "*"],
        description="Ünïcode",
        enabled=False,
        headers={"X-Team": "a b"},
        metadata={"tier": [1, None, {"x": 1.5}]},
        signing="classic",
        secret="a-secret-already-in-use",
        timeout_ms=1_500,
        max_in_flight=1_000,
        max_redirects=3,
        rate_limit={"per_second": 1.5, "burst": 3},
        ordering="strict",
        paused=True,
        retry={"preset": "brisk"},
        retry_statuses=["5xx", 404],
        circuit={"cooldown_s": 1},
    )
    assert endpoint == Endpoint(
        id=ID,
        account="acme",
        url="https://example.com/hooks",
        events=("a.b", "*"),
        secret="a-secret-already-in-use",
        signing=Signing.CLASSIC,
        description="Ünïcode",
        enabled=False,
        headers={"X-Team": "a b"},
        metadata={"tier": [1, None, {"x": 1.5}]},
        timeout=1.5,
        max_in_flight=1_000,
        max_redirects=3,
        rate_limit=RateLimit(1.5, 3),
        ordering=Ordering.STRICT,
        paused=True,
        retry={"preset": "brisk"},
        retry_statuses=("5xx", 404),
        circuit=CircuitPolicy(cooldown_s=1.0),
        created_at=100.0,
        updated_at=100.0,
    )


def test_null_is_the_same_as_not_said():
    fields = (
        "account",
        "description",
        "enabled",
        "headers",
        "metadata",
        "signing",
        "timeout_ms",
        "max_in_flight",
        "max_redirects",
        "rate_limit",
        "ordering",
        "paused",
        "retry",
        "retry_statuses",
    )
    said = an_endpoint(**dict.fromkeys(fields), secret=SECRET)
    assert said == an_endpoint(secret=SECRET)


@pytest.mark.parametrize(
    ("field", "value", "code", "pointer"),
    [
        ("url", None, "invalid_field", "/url"),
        ("url", 5, "invalid_field", "/url"),
        ("url", "ftp://example.com", "url_invalid", "/url"),
        ("url", "http://127.0.0.1/", "url_forbidden", "/url"),
        ("events", None, "invalid_field", "/events"),
        ("events", [], "invalid_field", "/events"),
        ("events", "order.*", "invalid_field", "/events"),
        ("events", ["a"] * 101, "invalid_field", "/events"),
        ("events", ["a.b", "a*"], "invalid_field", "/events/1"),
        ("events", ["a..b"], "invalid_field", "/events/0"),
        ("events", [".*"], "invalid_field", "/events/0"),
        ("events", ["*.a"], "invalid_field", "/events/0"),
        ("events", ["a" * 129], "invalid_field", "/events/0"),
        ("events", ["A.\u0441"], "invalid_field", "/events/0"),
        ("events", [1], "invalid_field", "/events/0"),
        ("account", "a b", "invalid_field", "/account"),
        ("account", "e\u0301", "invalid_field", "/account"),
        ("account", "a" * 65, "invalid_field", "/account"),
        ("account", 1, "invalid_field", "/account"),
        ("description", "x" * 1_001, "invalid_field", "/description"),
        ("description", "a\0b", "invalid_field", "/description"),
        ("description", "\ud800", "invalid_field", "/description"),
        ("description", 1, "invalid_field", "/description"),
        ("enabled", "yes", "invalid_field", "/enabled"),
        ("enabled", 1, "invalid_field", "/enabled"),
        ("signing", "md5", "invalid_field", "/signing"),
        ("signing", [], "invalid_field", "/signing"),
        ("secret", 5, "invalid_field", "/secret"),
        ("secret", "whsec_AAAA", "invalid_field", "/secret"),
        ("timeout_ms", 999, "invalid_field", "/timeout_ms"),
        ("timeout_ms", 60_001, "invalid_field", "/timeout_ms"),
        ("timeout_ms", 1_000.0, "invalid_field", "/timeout_ms"),
        ("timeout_ms", True, "invalid_field", "/timeout_ms"),
        ("timeout_ms", "1000", "invalid_field", "/timeout_ms"),
        ("max_in_flight", 0, "invalid_field", "/max_in_flight"),
        ("max_in_flight", 1_001, "invalid_field", "/max_in_flight"),
        ("max_in_flight", 10**30, "invalid_field", "/max_in_flight"),
        ("max_in_flight", True, "invalid_field", "/max_in_flight"),
        ("metadata", [], "invalid_field", "/metadata"),
        ("metadata", {"a": math.inf}, "invalid_field", "/metadata/a"),
        ("metadata", {"a": [10**30]}, "invalid_field", "/metadata/a/0"),
        ("metadata", {"a/b": {"~": "\0"}}, "invalid_field", "/metadata/a~1b/~0"),
        ("metadata", {"a": "x" * 16_384}, "invalid_field", "/metadata"),
        ("metadata", {1: 1}, "invalid_field", "/metadata"),
        ("metadata", {"a": object()}, "invalid_field", "/metadata/a"),
        ("headers", [], "invalid_field", "/headers"),
        ("headers", {"": "x"}, "invalid_field", "/headers/"),
        ("headers", {"X T": "x"}, "invalid_field", "/headers/X T"),
        ("headers", {"X:T": "x"}, "invalid_field", "/headers/X:T"),
        ("headers", {"X\r\nY": "x"}, "invalid_field", "/headers/X\r\nY"),
        ("headers", {"X-A": "a\r\nX-Evil: 1"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "a\nb"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "a\0b"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "a\x7fb"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "é"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": " a"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "a\t"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": ""}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": 1}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "***"}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "a" * 8_193}, "invalid_field", "/headers/X-A"),
        ("headers", {"X-A": "1", "x-a": "2"}, "invalid_field", "/headers/x-a"),
        ("headers", {f"x-{n}": "1" for n in range(65)}, "invalid_field", "/headers"),
        ("paused", "no", "invalid_field", "/paused"),
        ("max_redirects", -1, "invalid_field", "/max_redirects"),
        ("max_redirects", 4, "invalid_field", "/max_redirects"),
        ("max_redirects", 1.0, "invalid_field", "/max_redirects"),
        ("max_redirects", True, "invalid_field", "/max_redirects"),
        ("ordering", "fifo", "invalid_field", "/ordering"),
        ("ordering", ["strict"], "invalid_field", "/ordering"),
        ("circuit_state", {}, "unknown_field", "/circuit_state"),
        ("slow", True, "unknown_field", "/slow"),
        ("id", "ep_x", "unknown_field", "/id"),
        ("tenant_id", "x", "unknown_field", "/tenant_id"),
    ],
)
def test_a_field_that_will_not_do_is_named(field, value, code, pointer):
    assert refusal(an_endpoint, **{field: value}) == (code, pointer)


@pytest.mark.parametrize(
    "name",
    [
        *("host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"),
        *("keep-alive", "proxy-authorization", "proxy-x", "accept-encoding", "cookie", "forwarded"),
        *("x-forwarded-for", "webhook-id", "webhook-signature", "webhook-anything", "x-webhook-signature"),
        *("x-webhook-signature-next", "x-event-id", "x-idempotency-key", "x-delivery-timestamp"),
        *("hookline-hops", "user-agent", "content-type", "Content-Type", "WEBHOOK-ID"),
    ],
)
def test_a_header_that_hookline_sets_is_reserved(name):
    assert refusal(an_endpoint, headers={name: "x"}) == ("reserved_header", f"/headers/{name}")
    assert (
        refusal(lambda **fields: a_patch(an_endpoint(), **fields), headers={name: "x"})[0]
        == "reserved_header"
    )


def test_an_unknown_field_comes_with_the_nearest_name():
    with pytest.raises(Invalid, match=r"Unknown field 'event'\. Did you mean events\?"):
        an_endpoint(event=["*"])


def test_a_patch_changes_what_it_names_and_nothing_else():
    before = an_endpoint(headers={"X-A": "1"}, description="old", metadata={"a": 1})
    after = a_patch(before, url="https://example.org/", description="new")
    expected = {"url": "https://example.org/", "description": "new", "updated_at": 200.0}
    assert {
        name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)
    } == set(expected)
    assert {name: getattr(after, name) for name in expected} == expected


def test_null_in_a_patch_puts_the_default_back():
    before = an_endpoint(
        description="x",
        enabled=False,
        headers={"X-A": "1"},
        metadata={"a": 1},
        timeout_ms=1_000,
        max_in_flight=9,
        max_redirects=2,
        rate_limit={"per_second": 1},
        ordering="strict",
        paused=True,
        retry={"preset": "brisk"},
        retry_statuses=[],
    )
    fields = ("description", "enabled", "headers", "metadata", "signing", "timeout_ms", "max_in_flight")
    more = ("max_redirects", "rate_limit", "ordering", "paused", "retry", "retry_statuses")
    after = a_patch(before, **dict.fromkeys(fields + more))
    assert [getattr(after, name) for name in more] == [getattr(an_endpoint(), name) for name in more]
    assert (after.description, after.enabled, after.headers, after.metadata) == ("", True, {}, {})
    assert (after.signing, after.timeout, after.max_in_flight) == (Signing.STANDARD, 10.0, 5)


def test_a_header_that_looks_like_an_encrypted_one_is_refused():
    """In the database it would pass for one, and could not be opened."""
    with pytest.raises(Invalid, match="cannot begin with 'sealed1 '") as refused:
        an_endpoint(headers={"X-A": "sealed1 AAAA"})
    assert refused.value.pointer == "/headers/X-A"
    assert an_endpoint(headers={"X-A": "sealed1"}).headers == {"X-A": "sealed1"}


def test_headers_are_replaced_by_name_and_null_removes_one():
    before = an_endpoint(headers={"X-A": "1", "X-B": "2", "X-C": "3"})
    after = a_patch(before, headers={"x-a": "new", "X-B": None, "X-Absent": None, "X-D": "4"})
    assert after.headers == {"x-a": "new", "X-C": "3", "X-D": "4"}


def test_metadata_is_merged():
    before = an_endpoint(metadata={"a": {"x": 1, "y": 2}, "b": 1})
    assert a_patch(before, metadata={"a": {"x": None, "z": 3}, "b": None}).metadata == {"a": {"y": 2, "z": 3}}


def test_enabling_forgets_why_it_was_disabled():
    gone = Endpoint(
        id=ID, account="default", url="https://example.com/", events=("*",), secret=SECRET,
        enabled=False, disabled_reason="gone", created_at=1.0, updated_at=1.0,
    )  # fmt: skip
    assert a_patch(gone, enabled=True).disabled_reason is None
    assert a_patch(gone, enabled=False).disabled_reason == "gone"


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"url": None}, "invalid_field", "/url"),
        ({"url": "http://10.0.0.1/"}, "url_forbidden", "/url"),
        ({"events": None}, "invalid_field", "/events"),
        ({"account": "other"}, "invalid_field", "/account"),
        ({"secret": SECRET}, "unknown_field", "/secret"),
        ({"created_at": "2026-01-01T00:00:00Z"}, "unknown_field", "/created_at"),
        ({"headers": {"X-A": "***"}}, "invalid_field", "/headers/X-A"),
    ],
)
def test_a_patch_that_will_not_do_is_refused(fields, code, pointer):
    assert refusal(lambda **given: a_patch(an_endpoint(headers={"X-A": "1"}), **given), **fields) == (
        code,
        pointer,
    )


def test_a_style_of_signing_that_the_secret_does_not_suit_is_refused():
    classic = an_endpoint(signing="classic", secret="a-secret-already-in-use")
    assert refusal(lambda **fields: a_patch(classic, **fields), signing="standard") == (
        "invalid_field",
        "/signing",
    )
    assert a_patch(an_endpoint(), signing="classic").signing is Signing.CLASSIC


def test_a_circuit_of_null_is_none_at_all():
    assert an_endpoint(circuit=None).circuit is None
    assert a_patch(an_endpoint(), circuit=None).circuit is None
    assert a_patch(an_endpoint(circuit=None), circuit={}).circuit == CircuitPolicy()


def test_a_circuit_and_a_rate_limit_are_merged_and_a_retry_policy_is_replaced():
    before = an_endpoint(
        circuit={"cooldown_s": 10, "window_s": 30},
        rate_limit={"per_second": 5, "burst": 7},
        retry={"schedule": [0, 5], "jitter": "none"},
    )
    after = a_patch(
        before,
        circuit={"cooldown_s": 20, "window_s": None},
        rate_limit={"per_second": 6},
        retry={"preset": "eight"},
    )
    assert after.circuit == CircuitPolicy(cooldown_s=20.0)
    assert after.rate_limit == RateLimit(6.0, 7)
    assert after.retry == {"preset": "eight"}


def test_every_change_has_a_time_of_its_own():
    first = a_patch(an_endpoint(), description="a")
    second = a_patch(first, description="b")
    assert an_endpoint().updated_at < first.updated_at < second.updated_at
    assert second.updated_at == round(second.updated_at, 6)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("order*", "Did you mean order.*?"),
        ("order.", "Did you mean order?"),
        ("order-item.*", "Did you mean order_item.*?"),
        ("order/paid", "Did you mean order.paid?"),
        ("*.paid", ""),
    ],
)
def test_a_pattern_that_matches_nothing_valid_says_what_was_meant(pattern, meant):
    with pytest.raises(Invalid, match=r"an event type followed by \.\*, or \*") as caught:
        an_endpoint(events=[pattern])
    assert caught.value.detail.endswith(meant or "*.")
