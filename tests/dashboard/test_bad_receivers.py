"""What became of a request to a receiver that behaves badly can be read in the API, on the page and by the command."""

import json
from pathlib import Path

import pytest

from server_process import run
from tests.dashboard.bad_receivers import BAD, Bad, receiver
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Site

CORPUS = Path(__file__).parents[1] / "corpus" / "bad-input.jsonl"
ON_THE_PAGE = {
    "reset": "connection reset",
    "timeout": "no answer in time",
    "protocol": "no valid HTTP answer",
    "tls": "TLS failed",
}


def test_every_row_of_the_corpus_about_receivers_is_here() -> None:
    rows = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    assert [bad.row for bad in BAD] == [row["id"] for row in rows if row["area"] == "receiver"]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.row)
def test_it_can_be_read_everywhere(bad: Bad, service: Service, site: Site, tmp_path: Path) -> None:
    type = f"bad.{bad.row}"
    with receiver(bad) as url:
        fields = {
            "url": url,
            "events": [type],
            "timeout_ms": 30_000 if bad.error != "timeout" else 1_000,
            "retry": {"schedule": [0, 3_600], "jitter": "none"},
            "circuit": None,
        }
        endpoint = service.call("POST", "/v1/endpoints", fields)
        for _ in range(bad.events):
            event = service.publish(type)
            (delivery,) = service.call("GET", f"/v1/events/{event['id']}/deliveries")["data"]
            path = f"/deliveries/{delivery['id']}"
            page = site.until(path, lambda page: "Attempt 1:" in page.text)
        shown = service.call("GET", f"/v1{path}")
        listed = site.get(f"/deliveries?event_type={type}")
        service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    (attempt,) = service.call("GET", f"/v1{path}/attempts")["data"]
    assert attempt["status"] == bad.status
    assert (attempt["error"] or {"kind": None})["kind"] == bad.error
    assert (shown["state"], shown["attempts"]) == (bad.state, 1)
    assert delivery["id"][:12] in listed.html
    said = page.text[page.text.index("Attempt 1:") :]
    assert ON_THE_PAGE.get(str(bad.error), str(bad.status)).lower() in said.lower()
    done = run(
        "deliveries",
        "attempts",
        delivery["id"],
        cwd=tmp_path,
        env={"HOOKLINE_URL": service.url, "HOOKLINE_API_KEY": KEY},
    )
    assert done.returncode == 0, done.stderr
    for word in (bad.status, bad.error):
        assert word is None or str(word) in done.stdout
