"""The pages of keys make one that is shown once, and revoke one after saying what stops."""

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Site


def test_a_made_key_works_and_is_shown_once(service: Service, site: Site):
    made = site.submit(
        site.get("/keys/new"), "/keys/new", name="<i>shop</i>", scopes=["read", "publish"], account="ky-one"
    )
    [key] = [word for word in made.text.split() if word.startswith("hlk_") and len(word) > 20]
    assert key not in made.url
    assert all(key not in value for value in site.client.cookies.values())
    listed = site.get("/keys")
    assert key not in listed.html
    assert "<i>shop" not in listed.html
    assert "<i>shop</i>" in listed.text
    assert "publish, read" in listed.text
    holder = Site(service.url, key=key)
    assert holder.get("/keys").status == 404
    holder.close()


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"scopes": None}, "/scopes"),
        ({"scopes": ["all"]}, "/scopes"),
        ({"account": "no account"}, "/account"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    service: Service, site: Site, fields: dict[str, object], pointer: str
):
    before = len(service.call("GET", "/v1/keys?limit=200")["data"])
    page = site.submit(site.get("/keys/new"), "/keys/new", name="bad", **fields)
    assert page.status == 422
    assert page.text.count(pointer) == 1
    assert len(service.call("GET", "/v1/keys?limit=200")["data"]) == before


def test_revoking_ends_the_visits_of_the_key(service: Service, site: Site):
    made = service.call("POST", "/v1/keys", {"name": "going", "scopes": ["read", "admin"]})
    holder = Site(service.url, key=made["key"])
    path = f"/keys/{made['id']}/revoke"
    own = holder.get(path)
    assert "You are logged in with this key" in own.text
    page = site.get(path)
    assert page.h1 == "Revoke the key going?"
    assert "refused with 401" in page.text
    assert "You are logged in with this key" not in page.text
    done = site.submit(page, path)
    assert "The key going is revoked." in done.text
    assert holder.get("/events").h1 == "Log in"
    assert "It is revoked already" in site.get(path).text
    holder.close()


def test_keys_are_for_those_who_may_administrate(service: Service):
    reader = Site(service.url, key=service.new_key("read"))
    assert reader.get("/keys").status == 403
    assert reader.submit(reader.get("/keys/new"), "/keys/new", name="sneaky").status == 403
    reader.close()
    assert "sneaky" not in str(service.call("GET", "/v1/keys?limit=200"))


def test_an_unknown_key_is_not_found(site: Site):
    assert site.get("/keys/key_01m7kmg308b4fxkpaba0g00000/revoke").status == 404
