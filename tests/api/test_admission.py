"""Which callers the API admits."""

import httpx
import pytest

from answering import eventually
from server_process import ServerProcess

KEY = "hlk_the_key_of_these_tests"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", KEY)],
        [("authorization", f"Basic {KEY}")],
        [("authorization", f"Bearer {KEY}x")],
        [("authorization", f"Bearer {KEY[:-1]}")],
        [("authorization", f"Bearer {'x' * 50_000}")],
        [("authorization", f"Bearer {KEY}"), ("authorization", f"Bearer {KEY}")],
        [("authorization", "Bearer x"), ("authorization", f"Bearer {KEY}")],
        [("x-api-key", KEY)],
    ],
)
@pytest.mark.parametrize("path", ["/v1/events", "/v1/endpoints", "/v1/nothing", f"/v1/endpoints?key={KEY}"])
def test_without_the_key_every_call_is_refused_in_the_same_words(service, headers, path):
    service.client.cookies.clear()
    request = service.client.build_request(
        "POST", path, content=b"{}", headers={"content-type": "application/json"}
    )
    request.headers.pop("authorization", None)
    request.headers = type(request.headers)([*request.headers.raw, *headers])
    answer = service.client.send(request)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (401, "unauthenticated")
    assert problem["detail"] == "Send the API key as 'Authorization: Bearer <key>'."
    assert answer.headers["www-authenticate"] == 'Bearer realm="hookline"'


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_with_the_key_a_call_goes_through(service, scheme):
    assert service.call("GET", "/v1/endpoints", authorization=scheme + KEY).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_key_and_says_only_ok(service, path):
    def healthy() -> httpx.Response | None:
        """The answer; on a busy machine a server is not ready at times."""
        answer = service.call("GET", path, authorization="")
        return answer if answer.status_code != 503 else None

    answer = eventually(healthy)
    assert (answer.status_code, answer.text) == (200, '{"status":"ok"}')
    assert answer.headers["request-id"]


def test_in_development_mode_no_key_is_needed_but_the_name_must_be_local(tmp_path):
    with ServerProcess("--dev", cwd=tmp_path) as process:

        def status(host: str) -> int:
            return httpx.get(
                f"{process.url}/v1/endpoints", headers={"host": host}, trust_env=False, timeout=30
            ).status_code

        assert [status(host) for host in ("127.0.0.1", "localhost:8080", "[::1]:1")] == [200, 200, 200]
        assert [status(host) for host in ("rebind.example", "127.0.0.1.example", "localhost.example")] == [
            403
        ] * 3
