"""Event types are described over HTTP, and their schemas apply to publishes."""

import pytest

ORDER = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


def put(service, name, **fields):
    answer = service.call("PUT", f"/v1/event-types/{name}", fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_described_type_is_read_listed_and_forgotten(service):
    described = put(service, "shop.opened", description="A shop opened", schema=ORDER)
    assert described == {
        "name": "shop.opened",
        "description": "A shop opened",
        "schema": ORDER,
        "created_at": described["created_at"],
        "updated_at": described["created_at"],
    }
    assert service.call("GET", "/v1/event-types/shop.opened").json() == described
    assert described in service.call("GET", "/v1/event-types?limit=200").json()["data"]
    assert service.call("DELETE", "/v1/event-types/shop.opened").status_code == 204
    for method in ("GET", "DELETE"):
        assert service.call(method, "/v1/event-types/shop.opened").status_code == 404


def test_a_put_replaces_everything_that_was_said(service):
    first = put(service, "shop.closed", description="Closed", schema=ORDER)
    second = put(service, "shop.closed")
    assert (second["description"], second["schema"]) == ("", None)
    assert second["created_at"] == first["created_at"]
    assert second["updated_at"] != first["updated_at"]


def test_types_are_listed_by_name_page_by_page(service):
    names = sorted(f"paged.t{n}_{'x' * 100}" for n in range(5))
    for name in reversed(names):
        put(service, name)
    found, cursor = [], ""
    while cursor is not None:
        page = service.call("GET", f"/v1/event-types?limit=2{cursor and '&cursor=' + cursor}").json()
        found += [each["name"] for each in page["data"]]
        cursor = page["next_cursor"]
    assert found == sorted(found)
    assert [name for name in found if name.startswith("paged.")] == names
    for name in names:
        service.call("DELETE", f"/v1/event-types/{name}")


def test_a_cursor_of_types_is_good_for_types_only(service):
    for name in ("cursor.a", "cursor.b"):
        put(service, name)
    cursor = service.call("GET", "/v1/event-types?limit=1").json()["next_cursor"]
    refused = service.call("GET", f"/v1/endpoints?limit=1&cursor={cursor}")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_cursor")
    changed = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for forged in ("", "AAAA", "A" * 22, "A" * 43, changed, f"{cursor}!"):
        refused = service.call("GET", f"/v1/event-types?cursor={forged}")
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_cursor")


@pytest.mark.parametrize(
    ("name", "body", "pointer"),
    [
        ("order-paid", {}, "/name"),
        ("a" * 129, {}, "/name"),
        ("refused", {"description": 7}, "/description"),
        ("refused", {"description": "x" * 1_001}, "/description"),
        ("refused", {"schema": []}, "/schema"),
        ("refused", {"schema": {"type": "objct"}}, "/schema/type"),
        ("refused", {"schema": {"$ref": "https://elsewhere.example/s"}}, "/schema/$ref"),
        ("refused", {"schema": {"pattern": "(?<=a)b"}}, "/schema/pattern"),
        ("refused", {"schema": {"x": "y" * 70_000}}, "/schema"),
        ("refused", {"shema": {}}, "/shema"),
    ],
)
def test_what_will_not_do_is_refused_with_its_place_and_nothing_is_kept(service, name, body, pointer):
    answer = service.call("PUT", f"/v1/event-types/{name}", body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert service.call("GET", f"/v1/event-types/{name}").status_code == 404


def test_a_payload_that_does_not_fit_is_422_with_pointers_into_it(service):
    put(service, "order.checked", schema=ORDER)
    before = service.counts()
    answer = service.call("POST", "/v1/events", {"type": "order.checked", "payload": {"id": "x" * 50}})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "schema_mismatch")
    assert problem["errors"] == [{"pointer": "/payload/id", "detail": 'The value is not of type "integer".'}]
    assert service.counts() == before
    service.publish("order.checked", {"id": 1})


def test_in_a_batch_a_mismatch_is_that_items_error_with_its_place(service):
    put(service, "order.checked", schema=ORDER)
    events = [
        {"type": "order.checked", "payload": {"id": 1}},
        {"type": "order.checked", "payload": {}},
        {"type": "order.other", "payload": {}},
    ]
    answer = service.call("POST", "/v1/events/batch", {"events": events})
    assert answer.status_code == 202
    first, second, third = answer.json()["results"]
    assert "error" not in first | third
    assert second["error"]["code"] == "schema_mismatch"
    assert second["error"]["errors"] == [
        {"pointer": "/events/1/payload", "detail": '"id" is a required property.'}
    ]


def test_a_filter_decides_who_gets_an_event(service):
    endpoint = service.create(account="filtered", events=["*"], filter="total > `100`")
    assert endpoint["filter"] == "total > `100`"
    assert service.publish(payload={"total": 5}, account="filtered")["deliveries"] == 0
    assert service.publish(payload={"total": 500}, account="filtered")["deliveries"] == 1
    path = f"/v1/endpoints/{endpoint['id']}"
    assert service.call("PATCH", path, {"filter": None}).json()["filter"] is None
    assert service.publish(payload={"total": 5}, account="filtered")["deliveries"] == 1


@pytest.mark.parametrize(
    ("filter", "says"),
    [
        ("total >", "at character 8"),
        ("", "JMESPath"),
        ("x" * 1_001, "1,000"),
        ("[a, b]", "cannot build"),
        (7, "JMESPath"),
    ],
)
def test_a_filter_that_will_not_do_is_422(service, filter, says):
    body = {"url": "https://hooks.example.com/", "events": ["*"], "filter": filter}
    created = service.create()
    for answer in (
        service.call("POST", "/v1/endpoints", body),
        service.call("PATCH", f"/v1/endpoints/{created['id']}", {"filter": filter}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")
        assert answer.json()["errors"][0]["pointer"] == "/filter"
        assert says in answer.json()["detail"]
