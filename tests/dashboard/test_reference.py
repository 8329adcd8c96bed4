"""The pages of workers and settings show what runs, and with what."""

from hookline.config import Settings
from hookline.dashboard.pages.reference.settings import GROUPS
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Site


def test_the_worker_of_this_server_is_shown(service: Service, site: Site):
    [worker] = service.call("GET", "/v1/workers")["data"]
    page = site.get("/workers")
    assert page.h1.startswith("1 worker runs and owns")
    assert worker["host"] in page.text
    assert str(worker["pid"]) in page.text
    assert worker["version"] in page.text
    assert 'data-live="workers"' in page.html
    assert {"workers-head", "workers-list"} <= page.ids


def test_the_lanes_of_a_worker_are_listed(service: Service, site: Site):
    service.target.answers["/owned"] = (503, b"")
    endpoint = service.create("/owned", events=["owned.one"])
    service.publish("owned.one")  # it is tried again and again, so its lane is kept
    [worker] = service.call("GET", "/v1/workers")["data"]
    mine = f"/endpoints?worker={worker['id']}"
    page = site.until(mine, lambda page: any(endpoint["id"] in href for href, _ in page.links))
    assert "in this worker" in page.h1
    site.until("/workers", lambda page: any(href == mine for href, _ in page.links))
    nobody = "wrk_" + "0" * 26
    assert site.get(f"/endpoints?worker={nobody}").h1.startswith("0 of ")
    assert site.get("/endpoints?worker=nonsense").status == 404
    tenant = Site(service.url, key=service.new_key("read", account="rf-other"))
    assert endpoint["id"] not in tenant.get(mine).html
    tenant.close()


def test_every_setting_stands_in_a_group_and_on_the_page(site: Site):
    described = [name for group in GROUPS.values() for name in group]
    assert sorted(described) == sorted(Settings.__struct_fields__)
    page = site.get("/settings")
    assert set(Settings.__struct_fields__) <= page.ids


def test_settings_say_where_they_came_from_and_keep_secrets(site: Site):
    page = site.get("/settings")
    assert page.h1.endswith("the others are at their defaults")
    assert KEY not in page.html
    assert "HOOKLINE_API_KEY" in page.text
    assert "127.0.0.0/8 HOOKLINE_ALLOW_NETWORKS" in page.text
    assert "--database" in page.text


def test_both_are_for_operators(service: Service):
    tenant = Site(service.url, key=service.new_key("read", "admin", account="rf-tenant"))
    assert tenant.get("/workers").status == 404
    assert tenant.get("/settings").status == 404
    tenant.close()
