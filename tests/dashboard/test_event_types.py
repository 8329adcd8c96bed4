"""The pages of event types describe them, and change that with the API's own messages."""

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Site


def test_without_descriptions_the_first_command_is_shown(service: Service, site: Site):
    for each in service.call("GET", "/v1/event-types")["data"]:
        service.call("DELETE", f"/v1/event-types/{each['name']}")
    assert "hookline event-types set order.paid" in site.get("/event-types").text


def test_a_type_is_described_changed_and_deleted(service: Service, site: Site):
    service.create("/et", events=["et.*"], account="et-one")
    page = site.submit(
        site.get("/event-types/-new"),
        "/event-types/-new",
        name="et.made",
        description="<b>Bold</b>",
        schema='{\r\n"type": "object",\r\n"required": ["id"]}',
    )
    assert page.h1 == "et.made"
    assert "Saved." in page.text
    assert "<b>Bold" not in page.html
    assert "<b>Bold</b>" in page.text
    assert ("/endpoints?event_type=et.made", "1") in page.links
    assert ("/event-types/et.made", "et.made") in site.get("/event-types").links
    assert service.call("GET", "/v1/event-types/et.made")["schema"] == {
        "type": "object",
        "required": ["id"],
    }

    form = site.get("/event-types/et.made/change")
    changed = site.submit(form, "/event-types/et.made/change", description="Plain", schema="")
    assert "Plain" in changed.text
    assert "payloads of every shape are accepted" in changed.text

    asked = site.get("/event-types/et.made/delete")
    assert "can still be published" in asked.text
    gone = site.submit(asked, "/event-types/et.made/delete")
    assert "The description of et.made is deleted." in gone.text
    assert site.get("/event-types/et.made").status == 404


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": "no type"}, "/name"),
        ({"name": ""}, "/name"),
        ({"schema": "{"}, "/schema"),
        ({"schema": '{"type": "nothing"}'}, "/schema"),
        ({"schema": "[1]"}, "/schema"),
        ({"description": "x" * 1_001}, "/description"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    service: Service, site: Site, fields: dict[str, str], pointer: str
):
    given = {"name": "etbad.made", **fields}
    page = site.submit(site.get("/event-types/-new"), "/event-types/-new", **given)
    assert page.status == 422
    assert pointer in page.text
    assert page.html.count('class="err"') == 1
    names = [each["name"] for each in service.call("GET", "/v1/event-types")["data"]]
    assert "etbad.made" not in names


def test_describing_does_not_overwrite_a_described_type(service: Service, site: Site):
    service.call("PUT", "/v1/event-types/et.kept", {"description": "first"})
    page = site.submit(
        site.get("/event-types/-new"), "/event-types/-new", name="et.kept", description="second"
    )
    assert page.status == 422
    assert service.call("GET", "/v1/event-types/et.kept")["description"] == "first"


def test_a_tenant_reads_and_changes_nothing(service: Service):
    service.call("PUT", "/v1/event-types/et.kept", {"description": "first"})
    service.create("/et", events=["et.*"], account="et-two")
    tenant = Site(service.url, key=service.new_key("read", "admin", account="et-tenant"))
    page = tenant.get("/event-types/et.kept")
    assert page.h1 == "et.kept"
    assert "none asks for it" in page.text
    assert not any(href.endswith(("/change", "/delete")) for href, _ in page.links)
    for path in ("/event-types/et.kept/change", "/event-types/et.kept/delete"):
        assert tenant.get(path).status == 404
    token = dict(page.forms[-1].fields)["token"]
    assert tenant.post("/event-types/et.kept/delete", token=token).status == 404
    assert service.call("GET", "/v1/event-types/et.kept")["description"] == "first"
    tenant.close()


def test_a_key_that_may_read_changes_nothing(service: Service):
    service.call("PUT", "/v1/event-types/et.kept", {"description": "first"})
    reader = Site(service.url, key=service.new_key("read"))
    page = reader.get("/event-types/et.kept/delete")
    assert page.form("/event-types/et.kept/delete").is_disabled
    assert reader.submit(page, "/event-types/et.kept/delete").status == 403
    assert service.call("GET", "/v1/event-types/et.kept")["description"] == "first"
    reader.close()
