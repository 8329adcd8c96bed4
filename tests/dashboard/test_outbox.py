"""The pages of refused rows: what was refused and why, and a decision about each."""

import time
from uuid import uuid4

import pytest

from refused_rows import add_refused_row, note_source
from tests.dashboard.site import Site


@pytest.fixture
def account() -> str:
    return f"pages{uuid4().hex[:8]}"


def test_rows_are_listed_with_their_reason_and_lead_to_their_pages(service, site, account):
    id = add_refused_row(service.database, account=account, type="ob.paid", detail="It lacks a total.")
    page = site.get(f"/outbox?account={account}")
    assert page.status == 200
    assert (f"/outbox/{id}", "ob.paid") in page.links
    assert "It lacks a total." in page.text
    assert "schema_mismatch" in page.text
    assert "No refused row is like this." in site.get(f"/outbox?account={account}&code=too_large").text
    assert site.get("/outbox?code=No").status == 422


def test_a_row_is_retried(service, site, account):
    id = add_refused_row(service.database, account=account, type="ob.retried", payload={"id": 7})
    page = site.get(f"/outbox/{id}")
    assert page.h1 == "ob.retried was refused"
    done = site.submit(page, f"/outbox/{id}/retry")
    assert (done.path, done.status) == (f"/events/{id}", 200)
    assert "Published: it goes to no endpoint." in done.text
    assert site.get(f"/outbox/{id}").status == 404


def test_a_row_that_is_refused_again_says_why(service, site, account):
    id = add_refused_row(service.database, account=account, type="no type", code="fanout_limit")
    again = site.submit(site.get(f"/outbox/{id}"), f"/outbox/{id}/retry")
    assert again.status == 422
    assert "It was refused again: An event type is" in again.text
    assert "invalid_type" in again.text


def test_a_row_is_discarded_after_a_question(service, site, account):
    id = add_refused_row(service.database, account=account)
    asked = site.get(f"/outbox/{id}/discard")
    assert f"hookline outbox discard {id}" in asked.text
    done = site.submit(asked, f"/outbox/{id}/discard")
    assert (done.path, "Discarded: it is never sent." in done.text) == ("/outbox", True)
    assert service.call("GET", f"/v1/outbox/refused?account={account}")["data"] == []


def test_the_payload_can_be_downloaded_byte_for_byte(service, site, account):
    id = add_refused_row(service.database, account=account, payload=b"\xff\x00 not JSON")
    assert site.client.get(f"/outbox/{id}/payload").content == b"\xff\x00 not JSON"


def test_outboxes_are_shown_to_operators_alone(service, site, account):
    name = f"postgresql://db.example/{account}"
    note_source(service.database, name, looked_at=time.time() - 900, trouble="It cannot be reached.")
    page = site.get("/outbox")
    for words in (name, "It cannot be reached.", "Away"):
        assert words in page.text
    tenant = Site(service.url, key=service.new_key("admin", account=account))
    mine = add_refused_row(service.database, account=account, type="ob.mine")
    theirs = add_refused_row(service.database, account="somebody-else", type="ob.theirs")
    page = tenant.get("/outbox")
    assert (page.h1, name in page.text, "ob.theirs" in page.text) == ("Refused events", False, False)
    assert (f"/outbox/{mine}", "ob.mine") in page.links
    for path in (f"/outbox/{theirs}", f"/outbox/{theirs}/discard", f"/outbox/{theirs}/payload"):
        assert tenant.get(path).status == 404
    tenant.close()


def test_a_reader_sees_disabled_buttons(service, account):
    id = add_refused_row(service.database, account=account)
    reader = Site(service.url, key=service.new_key("read"))
    page = reader.get(f"/outbox/{id}")
    assert page.form(f"/outbox/{id}/retry").is_disabled
    assert reader.submit(page, f"/outbox/{id}/retry").status == 403
    assert service.call("GET", f"/v1/outbox/refused/{id}")["id"] == id
    reader.close()
