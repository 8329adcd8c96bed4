"""No request leaves a server with default settings for an address inside, whatever the URL, the name or the redirect.

One trial in a network namespace tries every URL of the corpus in every place where a URL counts (egress_trial.py);
each test looks at one of them. Every address of the namespace has a listener, and the kernel counts each connection
that was begun, so that one to an address without a listener would be seen too.
"""

import json
import os
import signal
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from hookline.errors import Invalid
from hookline.rules.destination import canonical
from security.canary import INSIDE, RECEIVER
from security.egress_trial import CASES, CODES, LITERAL, LOST, NAMED, OF_EACH, REBOUND, URLS, WITHIN_REACH
from security.namespace import missing, way_in

ROOT = Path(__file__).parents[2]
CEILING_S = 900  # it takes half a minute
SPELLED = {
    "U71": "http://xn--bcher-kva.example/",
    "U77": "http://hooks.example.com/",
    "U79": "https://hooks.example.com/A?b=%2F",
}
# Forbidden by its port, whatever address it has: such a URL cannot be used at all, and is not even looked up.
BY_PORT = {"U64", "U76"}
REFUSED = [id for id in LITERAL if id not in SPELLED]
TWICE_ASKED = 2  # lookups of a name that two attempts were made to

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("egress")
    words = way_in()
    assert words is not None
    paths = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [*words, sys.executable, "-m", "security.egress_trial", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=CEILING_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, said
    return json.loads((folder / "found.json").read_text())


def verdict(id: str) -> tuple[int, str]:
    """The answer that the corpus expects when the URL is written."""
    expected = CASES[id]["expect"]
    code = expected.rpartition("422 code=")[2]
    return (201, "") if expected.startswith("accept") else (422, code)


def is_in_its_one_spelling(url: str) -> bool:
    """Whether it is what is stored of it where private addresses are allowed; another one is a fault of its row."""
    try:
        return canonical(url, private_allowed=True) == url
    except Invalid:
        return False


def kinds(result: dict[str, Any]) -> list[str | None]:
    return [each["kind"] for each in result["attempts"]]


def test_the_corpus_has_these_cases_and_each_is_tried():
    assert sorted(CASES) == [f"U{number:02}" for number in range(1, 94)]
    assert [*URLS, "U92", "U93"] == sorted(CASES)


def test_the_canary_hears_every_address(found):
    assert found["within_reach"] == len(WITHIN_REACH)


def test_no_connection_reached_the_canary(found):
    assert found["hits"] == []


def test_without_the_guard_the_canary_would_have_been_reached(found):
    assert found["unguarded"] == [["169.254.169.254", 80]]


def test_writing_urls_opens_no_connection_and_looks_up_no_name(found):
    assert (found["writing_begun"], found["writing_lookups"]) == (0, 0)


def test_every_connection_that_was_begun_went_to_the_receiver(found):
    assert found["sending_begun"] == found["sending_received"] > REBOUND
    assert (found["own_begun"], found["own_received"]) == (0, 0)


@pytest.mark.parametrize("id", [*LITERAL, *NAMED])
def test_a_url_is_judged_when_an_endpoint_is_created(found, id):
    status, code, _ = found["created"][id]
    expected = (201, SPELLED.get(id, URLS[id])) if verdict(id)[0] == 201 else verdict(id)
    assert (status, code) == expected if id != "U91" else (status, code) == (201, URLS[id])


@pytest.mark.parametrize("id", [*LITERAL, *NAMED])
def test_a_url_is_judged_when_an_endpoint_is_changed_and_a_refused_one_leaves_the_old_one(found, id):
    """This is U92 too."""
    status, code, url = found["patched"][id]
    created, spelled, _ = found["created"][id]
    if created == 201:
        assert (status, url) == (200, spelled)
    else:
        assert (status, code, url) == (422, spelled, "https://hooks.example.com/before")


@pytest.mark.parametrize("id", [*LITERAL, *NAMED])
def test_a_url_is_judged_when_a_command_gives_it(found, id):
    exit_code, said = found["commands"][id]
    status, spelled, detail = found["created"][id]
    if status == 201:
        assert (exit_code, said) == (0, spelled)
    else:
        assert exit_code == 5
        assert said == f"hookline: {' '.join(detail.split())} (/url)\n"


@pytest.mark.parametrize("how", ["delivered", "tested"])
@pytest.mark.parametrize("id", REFUSED)
def test_a_refused_url_that_is_in_the_database_anyway_is_not_sent_to(found, id, how):
    is_at_fault = verdict(id)[1] == "url_invalid" or id in BY_PORT or not is_in_its_one_spelling(URLS[id])
    kind = "internal" if is_at_fault else "blocked_address"
    result = found[how][id]
    assert kinds(result) == [kind]
    assert (result["state"], result["reason"]) == ("dead", "exhausted")


@pytest.mark.parametrize("how", ["delivered", "tested"])
@pytest.mark.parametrize("id", SPELLED)
def test_an_accepted_url_is_sent_to_as_it_is_spelled(found, id, how):
    assert found[how][id]["state"] == "delivered"


def test_the_receiver_gets_the_host_without_its_dot_and_path_and_query_as_they_were_given(found):
    arrived = {(each["host"], each["path"], each["server_name"]) for each in found["arrivals"]}
    assert ("xn--bcher-kva.example", "/", None) in arrived
    assert ("hooks.example.com", "/", None) in arrived
    assert ("hooks.example.com", "/A?b=%2F", "hooks.example.com") in arrived


def test_no_request_has_credentials_of_a_netrc_or_fields_for_a_proxy(found):
    names = {name for each in found["arrivals"] for name in each["headers"]}
    assert names & {"authorization", "proxy-authorization", "proxy-connection", "cookie"} == set()
    assert all(each["path"].startswith("/") for each in found["arrivals"])


@pytest.mark.parametrize("id", ["U85", "U86", "U87", "U88", "U91"])
def test_a_name_that_points_inside_is_blocked_and_nobody_learns_where_it_points(found, id):
    [attempt] = found["delivered"][id]["attempts"]
    assert attempt["kind"] == "blocked_address"
    host = URLS[id].removeprefix("http://").strip("/")
    assert attempt["detail"].startswith(f"{host} points to an address that this worker may not send to")
    assert attempt["body"] == ""
    assert (found["delivered"][id]["state"], found["delivered"][id]["reason"]) == ("dead", "exhausted")


def test_a_name_that_turns_inside_after_its_first_answer_is_sent_to_where_it_was_checked(found):
    """U84: one lookup for one connection, and the address that was checked is the one that is dialled."""
    for name in ("U84", *(f"rebound {n}" for n in range(REBOUND))):
        result = found["delivered"][name]
        assert (kinds(result), result["reason"]) == (["http_5xx", "blocked_address"], "exhausted"), name


def test_a_connection_takes_one_lookup(found):
    assert found["rebound_lookups"] == TWICE_ASKED


@pytest.mark.parametrize("code", CODES)
def test_a_redirect_is_not_followed_unless_the_endpoint_allows_it(found, code):
    """U89 and U90."""
    for kind in ("", "named/"):
        result = found["delivered"][f"redirect {kind}{code} 0"]
        assert (kinds(result), result["reason"]) == (["http_3xx"], "rejected")


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("kind", ["", "named/"])
def test_where_a_redirect_leads_is_checked_like_a_new_destination(found, kind, code):
    """U89."""
    result = found["delivered"][f"redirect {kind}{code} 3"]
    assert (kinds(result), result["reason"]) == (["blocked_address"], "exhausted")
    assert "169.254" not in result["attempts"][0]["detail"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("most", [0, 3])
def test_a_line_break_in_a_location_leads_nowhere(found, code, most):
    result = found["delivered"][f"redirect line-break/{code} {most}"]
    assert result["state"] == "dead"
    assert INSIDE not in str([each["path"] for each in found["arrivals"]])


def test_an_allowed_redirect_keeps_method_and_body(found):
    """U90."""
    result = found["delivered"]["followed"]
    assert result["attempts"][0]["final_url"] == "http://redir2.test/other"
    arrived = [each for each in found["arrivals"] if each["host"] == "redir2.test"]
    requests = {(each["method"], each["path"], each["body"]) for each in arrived}
    assert requests == {("POST", "/", '{"id": 42}'), ("POST", "/other", '{"id": 42}')}
    assert kinds(found["delivered"]["U90"]) == ["http_3xx"]


def test_the_server_does_not_send_to_itself(found):
    """U91, with the address that it listens on, and with any public one when it listens on all."""
    assert found["own_literal"] == [422, "url_forbidden"]
    assert kinds(found["delivered"]["own"]) == ["blocked_address"]
    assert found["own_public_literal"] == [422, "url_forbidden"]
    assert kinds(found["own_public"]) == ["blocked_address"]


def test_a_test_call_tells_nothing_of_a_name_that_turned_inside(found):
    """U93."""
    assert set(found["test_call"]) == {"id", "event_id", "endpoint_id", "account", "event_type"}
    [attempt] = found["turned"]["attempts"]
    assert (attempt["kind"], attempt["status"], attempt["body"]) == ("blocked_address", None, "")
    assert "127.0.0.1" not in attempt["detail"]


def test_alerts_are_not_posted_inside_either(found):
    status, answer = found["alert"]
    assert status == 200
    assert [each["ok"] for each in answer["results"]] == [False, False]
    assert all(
        "points to an address that this worker may not send to" in each["detail"]
        for each in answer["results"]
    )


@pytest.mark.parametrize("kind", LOST)
def test_a_name_that_is_not_found_is_a_dns_error_and_holds_up_nobody(found, kind):
    for n in range(OF_EACH):
        result = found["lost"][f"{kind} {n}"]
        assert (kinds(result), result["reason"]) == (["dns"], "exhausted")
    assert found["lost"]["healthy"]["state"] == "delivered"


def test_only_names_are_looked_up(found):
    """What resolvers would take for an address in another spelling never gets there."""
    for name in found["asked"]:
        with pytest.raises(ValueError, match="does not appear to be"):
            ip_address(name)
        assert not name.replace(".", "").isdecimal()
    assert RECEIVER not in found["asked"]
