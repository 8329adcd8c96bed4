"""Which name is suggested for an unknown one."""

import pytest

from hookline.validate.suggest import nearest

COMMANDS = (
    "serve",
    "worker",
    "prune",
    "secrets",
    "send",
    "events",
    "deliveries",
    "dead",
    "keys",
    "listen",
    "sign",
)
OPTIONS = ("dev", "host", "port", "processes", "no-worker", "database", "dry-run", "state", "limit", "at", "idempotency-key")  # fmt: skip
FIELDS = (
    "url",
    "events",
    "retry",
    "endpoint_id",
    "idempotency_key",
    "timeout_ms",
    "attempts",
    "type",
    "payload",
)


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("prot", OPTIONS, "port"),
        ("hots", OPTIONS, "host"),
        ("databse", OPTIONS, "database"),
        ("lmit", OPTIONS, "limit"),
        ("status", OPTIONS, "state"),
        ("dry", OPTIONS, "dry-run"),
        ("dry_run", OPTIONS, "dry-run"),
        ("key", OPTIONS, "idempotency-key"),
        ("servr", COMMANDS, "serve"),
        ("sedn", COMMANDS, "send"),
        ("resend", COMMANDS, "send"),
        ("event", COMMANDS, "events"),
        ("delivery", COMMANDS, "deliveries"),
        ("dead-letters", COMMANDS, "dead"),
        ("apikeys", COMMANDS, "keys"),
        ("List", COMMANDS, "listen"),
        ("endpoint", FIELDS, "endpoint_id"),
        ("idempotencyKey", FIELDS, "idempotency_key"),
        ("IDEMPOTENCY_KEY", FIELDS, "idempotency_key"),
        ("callback_url", FIELDS, "url"),
        ("timeout", FIELDS, "timeout_ms"),
        ("max_attempts", FIELDS, "attempts"),
        ("event_type", ("type", "payload"), "type"),
        ("pyaload", FIELDS, "payload"),
        ("retries", FIELDS, "retry"),
        ("max_retries", FIELDS, "retry"),
        ("event_types", ("url", "events"), "events"),
        ("eventTypes", ("url", "events"), "events"),
    ],
)
def test_a_slip_is_understood(name, known, meant):
    assert nearest(name, known) == meant


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("bogus", OPTIONS),
        ("debug", OPTIONS),
        ("force", OPTIONS),
        ("to", OPTIONS),
        ("x", OPTIONS),
        ("", OPTIONS),
        ("run", COMMANDS),  # "prune" deletes
        ("test", COMMANDS),
        ("user", COMMANDS),
        ("stats", COMMANDS),
        ("alerts", COMMANDS),
        ("start", COMMANDS),
        ("init", COMMANDS),
        ("body", FIELDS),
        ("name", FIELDS),
        ("é" * 100_000, FIELDS),
        ("_", FIELDS),
    ],
)
def test_what_is_only_somewhat_alike_is_not_suggested(name, known):
    assert nearest(name, known) is None


def test_of_two_that_are_near_the_more_alike_one_is_meant():
    assert nearest("rat", ("at", "rate")) == "rate"
    assert nearest("header", ("headers", "read")) == "headers"
    assert nearest("events", ()) is None
