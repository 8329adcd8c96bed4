"""Endpoints are managed over HTTP."""

import threading

import pytest

from pipeline.sending.certificates import Authority

CLOSED = {
    "state": "closed",
    "consecutive_failures": 0,
    "opened_at": None,
    "cooldown_s": None,
    "next_probe_at": None,
    "last_success_at": None,
    "last_failure_at": None,
    "reason": None,
}


def test_an_endpoint_is_created_with_its_secret_and_read_without(service):
    answer = service.call(
        "POST",
        "/v1/endpoints",
        {
            "url": "HTTPS://Hooks.Example.COM:443/A?b=%2F",
            "events": ["order.*"],
            "headers": {"X-Token": "canary"},
        },
    )
    created = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/endpoints/{created['id']}"
    assert created["secret"].startswith("whsec_")
    assert "canary" not in answer.text
    shown = service.call("GET", f"/v1/endpoints/{created['id']}").json()
    assert shown == {name: value for name, value in created.items() if name != "secret"}
    assert shown == {
        "id": created["id"],
        "account": "default",
        "url": "https://hooks.example.com/A?b=%2F",
        "events": ["order.*"],
        "description": "",
        "enabled": True,
        "disabled_reason": None,
        "headers": {"X-Token": "***"},
        "client_certificate": None,
        "metadata": {},
        "filter": None,
        "signing": "standard",
        "signature": "v1",
        "timeout_ms": 10_000,
        "max_redirects": 0,
        "max_in_flight": 5,
        "rate_limit": None,
        "ordering": "parallel",
        "paused": False,
        "retry": {"preset": "patient"},
        "retry_statuses": ["5xx", 408, 425, 429],
        "circuit": {
            "consecutive_failures": 5,
            "failure_rate": 0.5,
            "window_s": 600,
            "min_attempts": 10,
            "cooldown_s": 300,
            "max_cooldown_s": 3_600,
        },
        "circuit_state": CLOSED,
        "slow": False,
        "counts": {"pending": 0, "awaiting_retry": 0, "in_flight": 0, "dead": 0},
        "problems": [],
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
    }


def test_every_field_comes_back_as_it_was_given(service):
    fields = {
        "account": "acme",
        "events": ["a", "b.*", "*"],
        "description": "line\nbreak and \u202e override",
        "enabled": False,
        "metadata": {"tier": ["gold", 1, 1.5, None, True, {"x": "é"}]},
        "signing": "classic",
        "secret": "a-secret-already-in-use",
        "timeout_ms": 1_001,
        "max_in_flight": 17,
        "max_redirects": 3,
        "rate_limit": {"per_second": 0.5, "burst": 2},
        "ordering": "strict",
        "paused": True,
        "retry": {"schedule": [0, 1, 2.5], "jitter": {"below": 0.1, "above": 0.2}},
        "retry_statuses": ["4xx", 503],
        "circuit": None,
    }
    created = service.create(**fields)
    assert {name: created[name] for name in fields} == fields
    shown = service.call("GET", f"/v1/endpoints/{created['id']}").json()
    assert {name: shown[name] for name in fields if name != "secret"} == {
        name: value for name, value in fields.items() if name != "secret"
    }


@pytest.mark.parametrize("media", ["application/json", "application/merge-patch+json"])
def test_a_patch_changes_what_it_names(service, media):
    created = service.create(headers={"X-A": "1", "X-B": "2"}, description="old")
    patch = {"description": None, "headers": {"X-A": None, "X-C": "3"}, "max_in_flight": 7, "enabled": False}
    answer = service.call("PATCH", f"/v1/endpoints/{created['id']}", patch, content_type=media)
    assert answer.status_code == 200
    expected = {
        **created,
        "description": "",
        "headers": {"X-B": "***", "X-C": "***"},
        "max_in_flight": 7,
        "enabled": False,
        "updated_at": answer.json()["updated_at"],
    }
    del expected["secret"]
    assert answer.json() == expected
    assert answer.json()["updated_at"] > created["updated_at"]
    assert service.call("GET", f"/v1/endpoints/{created['id']}").json() == expected


def test_a_patch_that_will_not_do_changes_nothing(service):
    created = service.create()
    path = f"/v1/endpoints/{created['id']}"
    before = service.call("GET", path).json()
    for patch, code in [
        ({"url": "http://169.254.169.254/", "description": "x"}, "url_forbidden"),
        ({"description": "x", "secret": "y"}, "unknown_field"),
        ({"account": "other"}, "invalid_field"),
    ]:
        assert service.call("PATCH", path, patch).json()["code"] == code
    assert service.call("GET", path).json() == before


def test_a_deleted_endpoint_is_gone(service):
    path = f"/v1/endpoints/{service.create()['id']}"
    answer = service.call("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["request-id"]
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        again = service.call(method, path, body)
        assert (again.status_code, again.json()["code"]) == (404, "not_found")


def test_endpoints_are_listed_newest_first_page_by_page(service):
    created = [service.create(account="pages")["id"] for _ in range(5)]
    service.create(account="elsewhere")
    listed: list[str] = []
    path = "/v1/endpoints?account=pages&limit=2"
    sizes = []
    while True:
        page = service.call("GET", path).json()
        listed += [endpoint["id"] for endpoint in page["data"]]
        sizes.append(len(page["data"]))
        if page["next_cursor"] is None:
            break
        path = f"/v1/endpoints?account=pages&limit=2&cursor={page['next_cursor']}"
    assert listed == created[::-1]
    assert sizes == [2, 2, 1]


def test_a_full_last_page_has_no_next(service):
    for _ in range(2):
        service.create(account="full")
    assert service.call("GET", "/v1/endpoints?account=full&limit=2").json()["next_cursor"] is None


def test_endpoints_are_filtered_by_whether_they_are_enabled(service):
    on, off = service.create(account="onoff")["id"], service.create(account="onoff", enabled=False)["id"]

    def ids(query: str) -> list[str]:
        return [
            each["id"] for each in service.call("GET", f"/v1/endpoints?account=onoff{query}").json()["data"]
        ]

    assert (ids("&enabled=true"), ids("&enabled=false"), ids("")) == ([on], [off], [off, on])


def test_a_cursor_is_good_for_its_own_list_only(service):
    for _ in range(3):
        service.create(account="cursors")
    cursor = service.call("GET", "/v1/endpoints?account=cursors&limit=1").json()["next_cursor"]
    assert service.call("GET", f"/v1/endpoints?account=cursors&limit=2&cursor={cursor}").status_code == 200
    flipped = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    for path in (
        f"/v1/endpoints?account=other&cursor={cursor}",
        f"/v1/endpoints?cursor={cursor}",
        f"/v1/endpoints?account=cursors&enabled=true&cursor={cursor}",
        f"/v1/deliveries?account=cursors&cursor={cursor}",
        f"/v1/endpoints?account=cursors&cursor={flipped}",
        f"/v1/endpoints?account=cursors&cursor={cursor[:-1]}",
        f"/v1/endpoints?account=cursors&cursor={cursor}AAAA",
    ):
        answer = service.call("GET", path)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor"), path


def test_head_answers_as_get_without_a_body(service):
    path = f"/v1/endpoints/{service.create()['id']}"
    get, head = service.call("GET", path), service.call("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))
    assert service.call("HEAD", "/v1/endpoints/ep_" + "0" * 26).status_code == 404


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"preset": "brisk"}, {"preset": "brisk"}),
        ({"schedule": [5, 10]}, {"schedule": [0, 5, 10], "jitter": "full"}),
        (
            {"base": 2, "attempts": 3, "cap": None, "jitter": "none"},
            {"base": 2, "factor": 2, "cap": None, "attempts": 3, "jitter": "none"},
        ),
        (None, {"preset": "patient"}),
    ],
)
def test_a_retry_policy_is_shown_as_it_works(service, said, shown):
    created = service.create(account="policies", retry={"preset": "eight"})
    answer = service.call("PATCH", f"/v1/endpoints/{created['id']}", {"retry": said})
    assert answer.json()["retry"] == shown
    assert service.call("GET", f"/v1/endpoints/{created['id']}").json()["retry"] == shown


def test_the_verbs_change_what_they_say_and_may_be_repeated(service):
    path = f"/v1/endpoints/{service.create(account='verbs')['id']}"
    for verb, field, value in [
        ("pause", "paused", True),
        ("resume", "paused", False),
        ("disable", "enabled", False),
        ("enable", "enabled", True),
    ]:
        for _ in range(2):
            answer = service.call("POST", f"{path}/{verb}")
            assert (answer.status_code, answer.json()[field]) == (200, value)
            assert service.call("GET", path).json() == answer.json()


def test_resetting_a_circuit_that_is_closed_leaves_it_closed(service):
    path = f"/v1/endpoints/{service.create(account='resets')['id']}"
    answer = service.call("POST", f"{path}/circuit/reset")
    assert (answer.status_code, answer.json()["circuit_state"]) == (200, CLOSED)


def test_endpoints_are_filtered_by_what_they_ask_for_and_how_they_stand(service):
    orders = service.create(account="asks", events=["order.*"])["id"]
    users = service.create(account="asks", events=["user.created", "order.paid"])["id"]

    def ids(query: str) -> list[str]:
        return [
            each["id"] for each in service.call("GET", f"/v1/endpoints?account=asks{query}").json()["data"]
        ]

    assert ids("&event_type=order.paid") == [users, orders]
    assert ids("&event_type=order.sent") == [orders]
    assert ids("&event_type=order") == []
    assert ids("&circuit=closed&slow=false") == [users, orders]
    assert ids("&circuit=open") == ids("&slow=true") == []
    page = service.call("GET", "/v1/endpoints?account=asks&event_type=order.paid&limit=1").json()
    rest = service.call(
        "GET", f"/v1/endpoints?account=asks&event_type=order.paid&limit=1&cursor={page['next_cursor']}"
    ).json()
    assert [each["id"] for each in page["data"] + rest["data"]] == [users, orders]
    assert rest["next_cursor"] is None


def test_a_filter_finds_what_is_far_down_the_list(service):
    rare = service.create(account="far", events=["rare"])["id"]
    for _ in range(201):
        service.create(account="far")
    page = service.call("GET", "/v1/endpoints?account=far&event_type=rare&limit=1").json()
    assert ([each["id"] for each in page["data"]], page["next_cursor"]) == ([rare], None)


def test_changes_made_at_the_same_moment_are_all_kept(service):
    path = f"/v1/endpoints/{service.create(account='race')['id']}"
    barrier = threading.Barrier(6)

    def change(number: int) -> None:
        barrier.wait(120)
        answer = service.call("PATCH", path, {"metadata": {f"k{number}": number}})
        assert answer.status_code == 200, answer.text

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.call("GET", path).json()["metadata"] == {f"k{number}": number for number in range(6)}


def test_a_client_certificate_is_written_shown_as_facts_and_removed(service, tmp_path):
    pem = Authority(tmp_path).identity("client")
    lines = [line for line in pem.splitlines() if not line.startswith("-----")]
    created = service.create(client_certificate=pem)
    path = f"/v1/endpoints/{created['id']}"
    answers = [
        service.call("GET", path),
        service.call("GET", "/v1/endpoints?limit=1"),
        service.call("PATCH", path, {"description": "x"}),
    ]
    for answer in answers:
        assert not any(line in answer.text for line in lines)
    facts = answers[0].json()["client_certificate"]
    assert facts == created["client_certificate"]
    assert (facts["subject"], facts["issuer"]) == ("CN=client", "CN=Test Authority")
    assert set(facts) == {"subject", "issuer", "serial", "not_before", "not_after", "fingerprint"}
    for value in (pem.partition("-----BEGIN CERTIFICATE")[0], facts, 7, ""):
        refused = service.call("PATCH", path, {"client_certificate": value})
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (422, "invalid_field")
        assert [each["pointer"] for each in problem["errors"]] == ["/client_certificate"]
        assert not any(line in refused.text for line in lines)
    assert service.call("GET", path).json()["client_certificate"] == facts
    assert service.call("PATCH", path, {"client_certificate": None}).json()["client_certificate"] is None
