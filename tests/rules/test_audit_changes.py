"""What an entry of the audit trail says of a change, and what it never does."""

import msgspec
import pytest

from hookline.model import AuditAction
from hookline.rules.audit_changes import (
    LIMIT_BYTES,
    AuditChanges,
    differences,
    endpoint_action,
    masked_values,
    noted,
    without_credentials,
)

SECRET = "s3cret"


def test_fields_that_differ_are_noted_with_their_old_and_new_value():
    before = {"url": "https://a.example/", "events": ("a.b",), "paused": False}
    after = {"url": "https://b.example/", "events": ("a.b",), "paused": True}
    assert differences(before, after) == AuditChanges(
        {"url": ["https://a.example/", "https://b.example/"], "paused": [False, True]}
    )


def test_what_there_was_not_and_what_is_gone_has_no_value():
    assert differences({}, {"url": "u"}) == AuditChanges({"url": [None, "u"]})
    assert differences({"url": "u"}, {}) == AuditChanges({"url": ["u", None]})


def test_nothing_that_differs_is_no_change():
    assert not differences({"url": "u"}, {"url": "u"})
    assert not noted(overlap_s=None)
    assert noted(overlap_s=0)


def test_hidden_values_are_compared_as_they_are_and_noted_without_what_they_hide():
    found = differences(
        {"headers": {"x-key": f"{SECRET}1"}},
        {"headers": {"x-key": f"{SECRET}2", "x-new": "v"}},
        shows={"headers": masked_values},
    )
    assert found == AuditChanges({"headers": [{"x-key": "***"}, {"x-key": "***", "x-new": "***"}]})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/x", "https://a.example/x"),
        (f"https://user:{SECRET}@a.example:8443/x?q=1", "https://***@a.example:8443/x?q=1"),
        (f"https://a@b:{SECRET}@a.example/", "https://***@a.example/"),
        ("https://a.example/@team", "https://a.example/@team"),
        (f"https://[{SECRET}@", "***"),
        (None, None),
    ],
)
def test_credentials_in_a_url_are_masked(url, shown):
    assert without_credentials(url) == shown


def test_a_long_value_is_cut_and_the_entry_says_so():
    found = differences({"description": "é" * 900}, {"description": "short"})
    assert found.is_cut
    old, new = found.fields["description"]
    assert old.endswith("…")
    assert set(old[:-1]) == {"é"}
    assert new == "short"


@pytest.mark.parametrize("value", ["x" * 500, '"\n' * 250, "\N{SNOWMAN}" * 190, ["y" * 90] * 6])
def test_changes_have_a_limit_and_the_first_ones_are_kept(value):
    found = differences({}, {f"field{n}": value for n in range(50)})
    assert found.is_cut
    assert len(msgspec.json.encode(found.fields)) <= LIMIT_BYTES
    assert next(iter(found.fields)) == "field0"
    assert len(found.fields) >= 3


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ({"enabled": True}, {"enabled": False}, AuditAction.ENDPOINT_DISABLED),
        ({"enabled": False}, {"enabled": True}, AuditAction.ENDPOINT_ENABLED),
        ({"paused": False}, {"paused": True}, AuditAction.ENDPOINT_PAUSED),
        ({"paused": True}, {"paused": False}, AuditAction.ENDPOINT_RESUMED),
        ({"paused": True, "url": "a"}, {"paused": False, "url": "b"}, AuditAction.ENDPOINT_UPDATED),
        ({"url": "a"}, {"url": "b"}, AuditAction.ENDPOINT_UPDATED),
        ({"circuit": None}, {"circuit": {}}, AuditAction.ENDPOINT_UPDATED),
        ({"max_redirects": 0}, {"max_redirects": 1}, AuditAction.ENDPOINT_UPDATED),
    ],
)
def test_a_change_of_one_switch_is_called_by_its_name(before, after, action):
    assert endpoint_action(differences(before, after)) is action
