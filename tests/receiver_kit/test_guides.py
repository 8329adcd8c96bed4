"""The code in the guides verifies what hookline signs, and nothing else."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.receiver.sql import POSTGRES, SQLITE
from receiver_kit.signed import classic, secret_of, standard
from tests.receiver import Receiver

DOCS = Path(__file__).parent.parent.parent / "docs"
GUIDE = (DOCS / "verify.md").read_text().partition("## By hand")[2]
PAYLOAD = '{"id": 42, "name": "é", "note": "</script>", "sum": 1.10}\n'.encode()

# What calls the printed functions: cases as JSON on standard input, one answer for each on standard output.
DRIVERS = {
    "python": (
        [sys.executable],
        ".py",
        """
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    is_genuine = is_genuine_standard if case["style"] == "standard" else is_genuine_classic
    print(json.dumps(is_genuine(case["secret"], case["headers"], base64.b64decode(case["body"]))))
""",
    ),
    "php": (
        ["php", "-d", "error_reporting=-1", "-d", "display_errors=1"],
        ".php",
        """
while (($line = fgets(STDIN)) !== false) {
    $case = json_decode($line, true);
    $isGenuine = $case['style'] === 'standard' ? 'isGenuineStandard' : 'isGenuineClassic';
    echo json_encode($isGenuine($case['secret'], $case['headers'], base64_decode($case['body']))), "\\n";
}
""",
    ),
    "js": (
        ["node"],
        ".js",
        """
for (const line of require("node:fs").readFileSync(0, "utf8").trim().split("\\n")) {
  const { style, secret, headers, body } = JSON.parse(line);
  const isGenuine = style === "standard" ? isGenuineStandard : isGenuineClassic;
  console.log(JSON.stringify(isGenuine(secret, headers, Buffer.from(body, "base64"))));
}
""",
    ),
}


class Printed:
    """The guide's code in one language, ready to be asked."""

    def __init__(self, language: str, folder: Path) -> None:
        command, suffix, driver = DRIVERS[language]
        if shutil.which(command[0]) is None:
            say = pytest.fail if os.environ.get("CI") else pytest.skip
            say(f"{command[0]} is not installed: the guide's code in this language was not run")
        (block,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
        script = folder / f"guide{suffix}"
        script.write_text(("<?php\n" if language == "php" else "") + block + driver)
        self._command = [*command, str(script)]

    def answers(self, *cases: tuple[str, str, dict[str, str], bytes]) -> list[Any]:
        """What the code says to each (style, secret, headers, body)."""
        lines = [
            json.dumps({"style": s, "secret": k, "headers": h, "body": base64.b64encode(b).decode()})
            for s, k, h, b in cases
        ]
        ran = subprocess.run(
            self._command,
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(params=DRIVERS)
def printed(request: pytest.FixtureRequest, tmp_path: Path) -> Printed:
    return Printed(request.param, tmp_path)


@pytest.mark.anyio
async def test_the_printed_code_believes_what_hookline_sends(printed, tmp_path):
    receiver = Receiver()
    await receiver.start()
    secrets = {}
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db", settings=Settings(dev=True)) as hooks:
        for style in ("standard", "classic"):
            url = receiver.url(f"/{style}")
            endpoint = await hooks.create_endpoint(url=url, events=["*"], signing=style)
            secrets[style] = endpoint.secret
        await hooks.publish("order.paid", PAYLOAD)
        requests = {request.path[1:]: request for request in await receiver.wait_for_requests(2)}
    await receiver.stop()
    assert {request.body for request in requests.values()} == {PAYLOAD}
    genuine = [(style, secrets[style], r.headers, r.body) for style, r in requests.items()]
    assert printed.answers(*genuine) == [True, True]
    assert printed.answers(*((s, k, h, b + b" ") for s, k, h, b in genuine)) == [False, False]
    assert printed.answers(*((s, secret_of("x"), h, b) for s, k, h, b in genuine)) == [False, False]


def test_the_printed_code_accepts_either_secret_while_rotating(printed):
    old, new = secret_of("o"), secret_of("n")
    now = int(time.time())
    both = standard(old, new, at=now)
    handed_over = classic(old, following=new)
    body = b'{"id":42,"name":"\xc3\xa9"}'
    cases = [("standard", key, both, body) for key in (old, new)]
    cases += [("classic", key, handed_over, body) for key in (old, new)]
    assert printed.answers(*cases) == [True] * 4
    others = [("standard", secret_of("x"), both, body), ("classic", secret_of("x"), handed_over, body)]
    assert printed.answers(*others) == [False] * 2


@pytest.mark.parametrize("age", [-400, 400, 10_000_000])
def test_the_printed_code_refuses_what_was_signed_at_another_time(printed, age):
    secret = secret_of("a")
    headers = standard(secret, at=int(time.time()) - age, body=b"{}")
    assert printed.answers(("standard", secret, headers, b"{}")) == [False]


def test_the_printed_code_answers_false_to_nonsense(printed):
    secret = secret_of("a")
    good, old = standard(secret, at=int(time.time()), body=b"{}"), classic(secret, body=b"{}")
    cases: list[tuple[str, str, dict[str, str], bytes]] = [("standard", secret, {}, b"{}")]
    cases += [("classic", secret, {}, b"{}")]
    for value in ("", "v1", "v1,", "é", "sha256=", "\x00", " ", good["webhook-signature"][:-2]):
        cases += [("standard", secret, {**good, "webhook-signature": value}, b"{}")]
        cases += [("classic", secret, {**old, "x-webhook-signature": value}, b"{}")]
    for name in ("webhook-id", "webhook-timestamp"):
        for value in ("", "x", "-1", "é", "1e9", "9" * 400):
            cases += [("standard", secret, {**good, name: value}, b"{}")]
    assert printed.answers(*cases) == [False] * len(cases)


def test_the_statements_that_make_the_table_are_printed_as_they_are_run():
    guide = re.sub(r"\s+", " ", (DOCS / "receiving.md").read_text())
    for statement in (*SQLITE.setup, *POSTGRES.setup):
        for part in re.findall(r"CREATE[^;]*", statement):
            assert re.sub(r"\s+", " ", part).strip() in guide
