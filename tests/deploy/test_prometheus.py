"""A real Prometheus scrapes a real server with the files of deploy/, and every expression in them means something."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from answering import eventually, receiving
from postgres_server import PostgresServer
from server_process import CEILING_S, ServerProcess

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy/prometheus/prometheus.yml"
RULES = ROOT / "deploy/prometheus/hookline.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/hookline.json"
PAGE = ROOT / "docs/metrics.md"
KEY = "hlk_the_key_of_the_scraper"
EVERY = "4s"  # also how long a scrape may take: on a busy machine that is more than a second
ONLY_IN_TROUBLE = re.compile(r"> 0$|refused")  # nothing is shown while nothing is wrong


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed (Debian package prometheus)")
        pytest.skip(f"{name} is not installed: metrics, rules and dashboard were not tested with it")
    return found


def checked(*arguments: str, input: str = "", cwd: Path = ROOT) -> None:
    """A check of promtool that has nothing to complain of."""
    ended = subprocess.run(
        [program("promtool"), "check", *arguments],
        input=input,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""


def panels() -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return shown


def expressions() -> list[str]:
    """Those of the dashboard, with its variables filled in."""
    found = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [each.replace("$job", "hookline").replace("$__rate_interval", "1m") for each in found]


def alerts() -> list[str]:
    return re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), re.MULTILINE)


def names_in(text: str) -> set[str]:
    """The metrics that a text names, histograms by their own name."""
    found = set(re.findall(r"\bhookline_[a-z_]+\b", text))
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in found}


class Monitored:
    """A server, the Prometheus that scrapes it, and its answers."""

    def __init__(self, server: ServerProcess, prometheus: httpx.Client) -> None:
        self.server = server
        self.client = httpx.Client(
            base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False
        )
        self._prometheus = prometheus

    def ask(self, path: str, **parameters: str) -> Any:
        answer = self._prometheus.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[float]:
        found = self.ask("query", query=expression)["result"]
        return [float(each["value"][1]) for each in found]

    def call(self, path: str, body: dict[str, Any]) -> None:
        assert self.client.post(path, json=body).status_code in (201, 202)


@pytest.fixture(scope="module")
def monitored(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Monitored]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}
    command = [program("prometheus"), "--config.file=prometheus.yml", "--web.listen-address=127.0.0.1:0"]
    with (
        postgres_server.fresh_database() as url,
        ServerProcess("--database", url, cwd=folder, env=env) as server,
    ):
        text = EXAMPLE.read_text()
        (folder / "prometheus.yml").write_text(
            text.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}").replace("15s", EVERY)
        )
        (folder / RULES.name).write_text(RULES.read_text())
        (folder / "hookline.key").write_text(KEY)
        checked("config", "prometheus.yml", cwd=folder)
        log = folder / "prometheus.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, f"--storage.tsdb.path={folder}/data"],
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:

            def listening() -> str | None:
                assert process.poll() is None, log.read_text()
                found = re.search(r'msg="Listening on" address=(\S+:[1-9]\d*)', log.read_text())
                return None if found is None else found[1]

            address = eventually(listening)
            with httpx.Client(base_url=f"http://{address}", timeout=30, trust_env=False) as prometheus:
                monitored = Monitored(server, prometheus)
                with monitored.client:
                    eventually(lambda: is_up(monitored) or None)
                    yield monitored
        finally:
            process.terminate()
            process.wait(CEILING_S)


def is_up(monitored: Monitored) -> bool:
    try:
        targets = monitored.ask("targets")["activeTargets"]
    except (httpx.HTTPError, json.JSONDecodeError):
        return False  # it listens, and is still starting
    return [target["health"] for target in targets] == ["up"]


def test_rules_and_dashboard_name_only_metrics_that_the_page_describes() -> None:
    known = set(re.findall(r"^\| `(\w+)", PAGE.read_text(), re.MULTILINE))
    assert names_in(RULES.read_text()) <= known
    assert names_in(" ".join(expressions())) <= known


def test_the_dashboard_shows_what_operators_ask_for() -> None:
    named = names_in(" ".join(expressions()))
    assert named >= {
        "hookline_publish_seconds",
        "hookline_publish_refused_total",
        "hookline_deliveries_total",
        "hookline_attempt_duration_seconds",
        "hookline_end_to_end_seconds",
        "hookline_pending",
        "hookline_dead_letters",
        "hookline_circuits_open",
        "hookline_oldest_due_age_seconds",
        "hookline_loop_lag_seconds",
    }
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    places = [tuple(panel["gridPos"].values()) for panel in panels()]
    assert len(set(places)) == len(places)


def test_promtool_finds_no_fault_with_metrics_and_rules(monitored: Monitored) -> None:
    checked("metrics", input=monitored.client.get("/metrics").text)
    checked("rules", str(RULES))


def test_prometheus_sees_the_counters_move(monitored: Monitored) -> None:
    delivered = 'sum(hookline_deliveries_total{job="hookline",outcome="delivered"})'
    published = "sum(hookline_publish_seconds_count)"

    def figures() -> list[float] | None:
        """Both; none while there are none, as after a scrape that failed."""
        found = monitored.query(delivered) + monitored.query(published)
        return found if len(found) == 2 else None

    before = eventually(figures)
    with receiving() as receiver:
        monitored.call("/v1/endpoints", {"url": f"{receiver.url}/200/moves", "events": ["moves.*"]})
        for n in range(7):
            monitored.call("/v1/events", {"type": "moves.one", "payload": n})
        wanted = [each + 7 for each in before]
        eventually(lambda: figures() == wanted or None)


def test_every_expression_of_the_dashboard_shows_something_under_load(monitored: Monitored) -> None:
    with receiving() as receiver:
        monitored.call("/v1/endpoints", {"url": f"{receiver.url}/200/load", "events": ["load.*"]})
        left = [each for each in expressions() if not ONLY_IN_TROUBLE.search(each)]
        for each in expressions():
            monitored.query(each)  # without an error

        def shown() -> bool | None:
            monitored.call("/v1/events", {"type": "load.one", "payload": 1})
            left[:] = [each for each in left if not _is_number(monitored.query(each))]
            return not left or None

        eventually(shown)


def _is_number(found: list[float]) -> bool:
    return bool(found) and not any(each != each for each in found)  # a share of nothing is no number


def test_every_rule_is_evaluated_without_an_error(monitored: Monitored) -> None:
    def evaluated() -> list[dict[str, Any]] | None:
        [group] = monitored.ask("rules")["groups"]
        rules: list[dict[str, Any]] = group["rules"]
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = eventually(evaluated)
    assert [rule["name"] for rule in rules] == alerts() != []
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}


def test_a_failing_endpoint_is_an_alert(monitored: Monitored) -> None:
    with receiving() as receiver:
        monitored.call(
            "/v1/endpoints",
            {
                "url": f"{receiver.url}/503/fails",
                "events": ["fails.*"],
                "circuit": {"consecutive_failures": 1},
            },
        )
        monitored.call("/v1/events", {"type": "fails.one", "payload": 1})

        def told() -> bool | None:
            names = {each["labels"]["alertname"] for each in monitored.ask("alerts")["alerts"]}
            return "HooklineCircuitsOpen" in names or None

        eventually(told)
