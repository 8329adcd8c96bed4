"""Dead letters are shown with what to do about them, and go back or away in bulk after a question."""

import re
from typing import Any
from uuid import uuid4

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site

ONCE = {"base": 1, "factor": 1, "cap": None, "attempts": 1, "jitter": "none"}


class Dead:
    """An endpoint at a path of its own, with dead letters."""

    def __init__(
        self, service: Service, count: int, *, status: int = 401, body: bytes = b"no", **fields: Any
    ):
        self.path = f"/{uuid4().hex}"
        self.account = fields.pop("account", f"a{uuid4().hex[:12]}")
        type = fields.pop("type", "order.paid")
        service.target.answers[self.path] = (status, body)
        fields = {"retry": ONCE, "circuit": None, **fields}
        self.endpoint = service.create(self.path, account=self.account, events=["*"], **fields)
        self.id = self.endpoint["id"]
        for _ in range(count):
            service.publish(type, account=self.account)
        self.service = service
        self.count = count

    def all_died(self, site: Site) -> Page:
        """The list, once all of them are dead."""
        start, rows = f"{self.count} dead letter", min(self.count, 25)

        def is_there(page: Page) -> bool:
            return page.h1.startswith(start) and len(_ids(page)) == rows

        path = f"/dead-letters?endpoint_id={self.id}"
        site.until(path, is_there)
        return site.get(path)  # its rows may have been read before its count

    def recover(self) -> None:
        self.service.target.answers[self.path] = (200, b"ok")

    def states(self) -> list[str]:
        found = self.service.call("GET", f"/v1/deliveries?endpoint_id={self.id}&limit=200")["data"]
        return [each["state"] for each in found]


def _ids(page: Page) -> list[str]:
    return re.findall(r'name="id" value="(dlv_\w+)"', page.html)


def _reader(service: Service) -> Site:
    return Site(service.url, key=service.new_key("read"))


def test_without_dead_letters_it_says_so(service: Service):
    visitor = Site(service.url, key=service.new_key("admin", account="nobody-yet"))
    page = visitor.get("/dead-letters")
    assert page.h1 == "No dead letters"
    assert "kept here for 90 days" in page.text
    visitor.close()


def test_a_group_says_what_is_wrong_and_what_helps(service: Service, site: Site):
    dead = Dead(service, 3, headers={"authorization": "Bearer old"})
    dead.all_died(site)
    page = site.until("/dead-letters", lambda page: f"g-{dead.id}" in page.ids)
    assert "dead letters at" in page.h1
    assert "Credentials" in page.text
    assert "401 Unauthorized" in page.text
    assert "hookline endpoints update" in page.text
    assert (f"/endpoints/{dead.id}/settings?change=headers#headers", "Change the header") in page.links
    assert (f"/dead-letters/replay?endpoint_id={dead.id}&since=7d", "Replay 3…") in page.links
    # The count leads to a list with as many.
    assert (f"/dead-letters?endpoint_id={dead.id}&since=7d", "3") in page.links
    listed = site.get(f"/dead-letters?endpoint_id={dead.id}&since=7d")
    assert listed.h1.startswith("3 dead letters of ")
    assert len(_ids(listed)) == 3


def test_the_list_of_a_group_opens_in_place(service: Service, site: Site):
    dead = Dead(service, 2)
    dead.all_died(site)
    page = site.until(f"/dead-letters?open={dead.id}", lambda page: len(_ids(page)) == 2)
    assert "Close the list" in page.text


def test_an_endpoint_that_accepts_again_is_said_to_be_ready(service: Service, site: Site):
    dead = Dead(service, 1, account="ready")
    dead.all_died(site)
    dead.recover()
    service.publish(account="ready")
    theirs = Site(service.url, key=service.new_key("admin", account="ready"))
    page = theirs.until("/dead-letters", lambda page: "can go back now" in page.text)
    assert "1 can go back now: their receiver accepts again." in page.text
    assert "Credentials, over" in page.text
    theirs.close()


def test_hostile_answers_are_text(service: Service, site: Site):
    dead = Dead(service, 1, status=422, body=b"<script>alert(1)</script>")
    page = dead.all_died(site)
    assert "“<script>alert(1)</script>”" in page.text
    assert "<script>alert" not in page.html


def test_long_lists_have_pages_and_a_filter_for_all(service: Service, site: Site):
    dead = Dead(service, 27)
    page = dead.all_died(site)
    assert len(_ids(page)) == 25
    assert "25 of 27" in page.text
    (following,) = [href for href, text in page.links if text == "Next page"]
    assert len(_ids(site.get(following))) == 2
    # A window begins at the same moment on every page.
    narrowed = site.get(f"/dead-letters?endpoint_id={dead.id}&since=1h")
    (following,) = [href for href, text in narrowed.links if text == "Next page"]
    assert len(_ids(site.get(following))) == 2
    assert (f"/dead-letters/replay?endpoint_id={dead.id}", "Replay all 27…") in page.links


def test_selected_ones_are_replayed_after_a_question(service: Service, site: Site):
    dead = Dead(service, 3)
    page = dead.all_died(site)
    dead.recover()
    question = site.submit(page, "/dead-letters/replay", id=_ids(page)[:2])
    assert question.h1.startswith("Replay 2 dead letters to ")
    assert "hookline dead replay dlv_" in question.text
    assert "may die again" in question.text
    assert dead.states() == ["dead"] * 3  # asking changes nothing
    job = site.submit(question, "/dead-letters/replay")
    assert job.path.startswith("/replays/rpl_")
    job = site.until(job.path, lambda page: "2 delivered, none died again" in page.text)
    assert job.h1 == "Replayed 2 dead letters"
    assert sorted(dead.states()) == ["dead", "delivered", "delivered"]


def test_sending_a_question_twice_starts_one_job(service: Service, site: Site):
    dead = Dead(service, 2)
    dead.all_died(site)
    question = site.get(f"/dead-letters/replay?endpoint_id={dead.id}")
    assert question.h1.startswith("Replay 2 dead letters to ")
    first = site.submit(question, "/dead-letters/replay")
    again = site.submit(question, "/dead-letters/replay")
    assert again.path == first.path
    done = site.until(first.path, lambda page: "2 died again with 401 Unauthorized" in page.text)
    assert done.h1 == "Replayed 2 dead letters"
    assert (first.path, "Replayed 2 dead letters") in site.get("/replays").links
    assert site.get(f"/dead-letters?job={first.path.removeprefix('/replays/')}").path == first.path


def test_the_question_says_what_holds_them(service: Service, site: Site):
    dead = Dead(service, 1, rate_limit={"per_second": 0.5, "burst": 1})
    dead.all_died(site)
    service.call("POST", f"/v1/endpoints/{dead.id}/pause")
    assert (
        "Paused: they wait until it is resumed."
        in site.get(f"/dead-letters/replay?endpoint_id={dead.id}").text
    )
    service.call("POST", f"/v1/endpoints/{dead.id}/disable")
    assert (
        "Disabled: they wait until it is enabled."
        in site.get(f"/dead-letters/replay?endpoint_id={dead.id}").text
    )


def test_the_question_says_how_long_a_rate_limit_takes(service: Service, site: Site):
    dead = Dead(service, 5)
    dead.all_died(site)
    fields = {"rate_limit": {"per_second": 0.5, "burst": 1}}
    service.call("PATCH", f"/v1/endpoints/{dead.id}", fields)
    text = site.get(f"/dead-letters/replay?endpoint_id={dead.id}").text
    assert "At 0.5 a second, its limit, that takes about 8 s." in text


def test_what_a_deleted_endpoint_left_can_only_be_discarded(service: Service, site: Site):
    dead = Dead(service, 1)
    dead.all_died(site)
    service.call("DELETE", f"/v1/endpoints/{dead.id}")
    page = site.until(f"/dead-letters?endpoint_id={dead.id}", lambda page: "a deleted endpoint" in page.h1)
    assert page.h1 == "1 dead letter of a deleted endpoint"
    question = site.get(f"/dead-letters/replay?endpoint_id={dead.id}")
    assert "nothing can be sent to it" in question.text
    assert not [form for form in question.forms if form.action == "/dead-letters/replay"]
    assert (f"/dead-letters/discard?endpoint_id={dead.id}", "Discard 1…") in question.links


def test_discarded_ones_are_cancelled(service: Service, site: Site):
    dead = Dead(service, 2)
    dead.all_died(site)
    question = site.get(f"/dead-letters/discard?endpoint_id={dead.id}")
    assert question.h1.startswith("Discard 2 dead letters of ")
    assert "replayed one by one" in question.text
    job = site.submit(question, "/dead-letters/discard")
    assert job.path.startswith("/discards/dsc_")
    site.until(job.path, lambda page: page.h1 == "Discarded 2 dead letters")
    assert dead.states() == ["cancelled"] * 2
    assert "Discarded 2 dead letters" in site.get("/discards").text


def test_a_large_discard_wants_its_number(service: Service, site: Site):
    dead = Dead(service, 101)
    dead.all_died(site)
    question = site.get(f"/dead-letters/discard?endpoint_id={dead.id}")
    assert "Type 101 to go on" in question.text
    refused = site.submit(question, "/dead-letters/discard", typed="100")
    assert refused.status == 422
    assert "Type 101 to discard that many. Nothing was changed." in refused.text
    assert set(dead.states()) == {"dead"}
    job = site.submit(refused, "/dead-letters/discard", typed="101")
    site.until(job.path, lambda page: page.h1 == "Discarded 101 dead letters")


def test_an_endpoint_is_found_by_its_url(service: Service, site: Site):
    dead = Dead(service, 1)
    dead.all_died(site)
    page = site.get(f"/dead-letters?endpoint_id={dead.path[1:]}")
    assert page.path == f"/dead-letters?endpoint_id={dead.id}"
    assert page.h1.startswith("1 dead letter of ")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("endpoint_id=nowhere.example", "No endpoint has nowhere.example in its URL."),
        ("endpoint_id=ep_zzz", "This is not the beginning of an endpoint's id."),
        ("event_type=a%20b", "event_type is invalid"),
        ("since=yesterday", "since"),
        ("reason=bored", "reason is one of"),
        ("cursor=abc", "cursor"),
    ],
)
def test_a_filter_that_cannot_be_read_is_explained(site: Site, query: str, message: str):
    page = site.get(f"/dead-letters?{query}")
    assert page.status == 422
    assert page.h1 == "These dead letters cannot be listed"
    assert message in page.text


def test_nothing_is_replayed_without_a_choice(site: Site):
    page = site.get("/dead-letters/replay?selected=1")
    assert page.path == "/dead-letters"
    assert "Tick at least one dead letter first." in page.text
    unknown = site.get("/dead-letters/replay?id=dlv_nonsense")
    assert unknown.status == 422
    assert unknown.h1 == "This replay cannot be started"


def test_a_key_that_may_only_read_sees_disabled_buttons(service: Service, site: Site):
    dead = Dead(service, 1)
    dead.all_died(site)
    reader = _reader(service)
    page = reader.get(f"/dead-letters?endpoint_id={dead.id}")
    assert page.form("/dead-letters/replay").is_disabled
    assert reader.get(f"/dead-letters/replay?endpoint_id={dead.id}").status == 403
    assert reader.get("/replays").status == 200
    assert dead.states() == ["dead"]
    reader.close()


def test_a_key_of_an_account_sees_nothing_of_others(service: Service, site: Site):
    theirs = Dead(service, 2, type="secret.type")
    own = Dead(service, 1)
    theirs.all_died(site)
    own.all_died(site)
    question = site.get(f"/dead-letters/replay?endpoint_id={theirs.id}")
    job = site.submit(question, "/dead-letters/replay")
    tenant = Site(service.url, key=service.new_key("admin", account=own.account))
    page = tenant.until("/dead-letters", lambda page: f"g-{own.id}" in page.ids)
    assert page.h1 == "1 dead letter at 1 endpoint"
    for path in ("/dead-letters", "/dead-letters?view=list", "/replays", "/dead-letters?replayed=true"):
        page = tenant.get(path)
        assert page.status == 200
        for foreign in (theirs.id, theirs.path, theirs.account, "secret.type", job.path):
            assert foreign not in page.html, path
    unknown_endpoint = "ep_" + "0" * 26
    for path in ("/dead-letters?endpoint_id={}", "/dead-letters/replay?endpoint_id={}"):
        seen = tenant.get(path.format(theirs.id))
        never = tenant.get(path.format(unknown_endpoint))
        assert seen.status == never.status, path
        assert seen.text.replace(theirs.id, unknown_endpoint) == never.text, path
    delivery = service.call("GET", f"/v1/deliveries?endpoint_id={theirs.id}")["data"][0]["id"]
    unknown_delivery = "dlv_" + "0" * 26
    seen = tenant.get(f"/dead-letters/replay?id={delivery}")
    never = tenant.get(f"/dead-letters/replay?id={unknown_delivery}")
    assert (seen.status, seen.h1) == (never.status, never.h1)
    assert seen.text.replace(delivery, unknown_delivery) == never.text
    seen = tenant.get(job.path)
    assert seen.status == 404
    never = tenant.get("/replays/rpl_" + "0" * 26)
    assert never.status == 404
    assert seen.h1 == never.h1
    assert tenant.get(f"/dead-letters?account={theirs.account}").status == 422
    assert tenant.get(f"/dead-letters?endpoint_id={theirs.path[1:]}").status == 422
    tenant.close()


def test_what_changes_by_itself_is_streamed(service: Service, site: Site):
    dead = Dead(service, 1)
    dead.all_died(site)
    with site.client.stream("GET", "/live?page=dead") as stream:
        for line in stream.iter_lines():
            if line.startswith("data: ") and "regions" in line:
                assert '"n-all"' in line
                assert '"jobs"' in line
                break
