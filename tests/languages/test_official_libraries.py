"""The official libraries of Standard Webhooks believe what a live hookline delivers, and nothing else.

They are called by the code that docs/verify.md prints, as it is printed.
"""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from answering import eventually, receiving
from languages.toolchains import (
    HERE,
    SMALL_JVM,
    cargo_target,
    go,
    java_path,
    needed,
    node_modules,
    official_sources,
    run,
)
from receiver_kit.signed import secret_of, standard
from server_process import ServerProcess

GUIDE = (HERE.parents[1] / "docs" / "verify.md").read_text()
SECTION = GUIDE.partition("## With an official library")[2].partition("\n## ")[0]
PLAIN = b'{"order": 42}'
UNICODE = '{"name": "Zoë 🎈", "note": "</script>", "sum": 1.10, "text": "\\u00e9\\n"}'.encode()
PYTHON = """
import sys
for line in sys.stdin:
    secret, id, timestamp, signature, body = line.rstrip("\\n").split("\\t")
    headers = {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}
    print("true" if is_genuine(secret, headers, bytes.fromhex(body)) else "false")
"""


class Webhook(NamedTuple):
    """A request, and the secret that it is verified with."""

    secret: str
    id: str
    timestamp: str
    signature: str
    body: bytes

    @property
    def line(self) -> str:
        return "\t".join([self.secret, self.id, self.timestamp, self.signature, self.body.hex()])


class Delivered(NamedTuple):
    """What a live server delivered: plain, with Unicode in it, and while both secrets sign."""

    plain: Webhook
    unicode: Webhook
    by_old_secret: Webhook
    by_new_secret: Webhook


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    folder = tmp_path_factory.mktemp("server")
    with (
        receiving() as receiver,
        ServerProcess("--dev", "--database", "sqlite:///hooks.db", cwd=folder) as server,
    ):
        client = httpx.Client(base_url=server.url, trust_env=False, timeout=60)

        def post(path: str, content: bytes) -> dict[str, str]:
            answer = client.post(path, content=content, headers={"content-type": "application/json"})
            assert answer.is_success, answer.text
            found: dict[str, str] = answer.json()
            return found

        def delivered(payload: bytes, secret: str) -> Webhook:
            event = post("/v1/events", b'{"type": "order.paid", "payload": ' + payload + b"}")
            [request] = eventually(
                lambda: [each for each in receiver.requests if each.event_id == event["id"]] or None
            )
            assert request.body == payload
            names = ("webhook-id", "webhook-timestamp", "webhook-signature")
            return Webhook(secret, *(request.headers[name] for name in names), request.body)

        with client:
            wanted = {"url": f"{receiver.url}/200", "events": ["*"]}
            endpoint = post("/v1/endpoints", json.dumps(wanted).encode())
            old = endpoint["secret"]
            plain, with_unicode = delivered(PLAIN, old), delivered(UNICODE, old)
            new = post(f"/v1/endpoints/{endpoint['id']}/secret/rotate", b'{"overlap_s": 3600}')["secret"]
            rotating = delivered(UNICODE, old)
        assert len(rotating.signature.split(" ")) == 2
        yield Delivered(plain, with_unicode, rotating, rotating._replace(secret=new))
        assert server.stop() == 0


def genuine(delivered: Delivered) -> dict[str, Webhook]:
    return delivered._asdict()


def forged(delivered: Delivered) -> dict[str, Webhook]:
    """Each webhook with one thing changed."""
    found = {}
    for name, webhook in genuine(delivered).items():
        key = webhook.secret
        changes = {
            "the first bit of the body": webhook._replace(body=flipped(webhook.body, 0)),
            "the last bit of the body": webhook._replace(body=flipped(webhook.body, -1)),
            "a bit in the middle": webhook._replace(body=flipped(webhook.body, len(webhook.body) // 3)),
            "the secret": webhook._replace(secret=secret_of("x")),
            "the id": webhook._replace(id=f"{webhook.id[:-1]}{'v' if webhook.id[-1] != 'v' else 'u'}"),
            "the time": webhook._replace(timestamp=str(int(webhook.timestamp) - 1)),
            "the signature": webhook._replace(signature=webhook.signature.replace("v1,", "v1,A")),
        }
        for minutes in (-6, 6):  # signed by whoever has the secret, but too long ago or too early
            at = int(time.time()) + 60 * minutes
            signed = standard(key, id=webhook.id, at=at, body=webhook.body)
            changes[f"signed {minutes} minutes from now"] = webhook._replace(
                timestamp=str(at), signature=signed["webhook-signature"]
            )
        found |= {f"{name}: {change}": each for change, each in changes.items()}
    return found


def flipped(body: bytes, at: int) -> bytes:
    """The body with the lowest bit of one byte turned round."""
    changed = bytearray(body)
    changed[at] ^= 1
    return bytes(changed)


def printed(language: str) -> str:
    """The code of the page in a language."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    code: str = found
    return code


def python(folder: Path) -> list[str]:
    (folder / "verifier.py").write_text(printed("python") + PYTHON)
    return [sys.executable, "verifier.py"]


def javascript(folder: Path) -> list[str]:
    node = needed("node", what="JavaScript")
    (folder / "node_modules").symlink_to(node_modules())
    driver = (HERE / "javascript" / "verifier.js").read_text()
    (folder / "verifier.js").write_text(printed("js") + driver)
    return [node, "verifier.js"]


def golang(folder: Path) -> list[str]:
    shutil.copytree(HERE / "go", folder, dirs_exist_ok=True)
    (folder / "verifier" / "genuine.go").write_text("package main\n\n" + printed("go"))
    go("build", "-o", "verify", "./verifier", cwd=folder)
    return [str(folder / "verify")]


def rust(folder: Path) -> list[str]:
    shutil.copytree(HERE / "rust", folder, dirs_exist_ok=True)
    (folder / "src" / "genuine.rs").write_text(printed("rust"))
    cargo = needed("cargo", what="Rust")
    run([cargo, "build", "--quiet", "--locked", "--target-dir", cargo_target()], cwd=folder)
    return [str(cargo_target() / "debug" / "languages")]


def java(folder: Path) -> list[str]:
    shutil.copy(HERE / "java" / "Verifier.java", folder)
    (folder / "Genuine.java").write_text(printed("java"))
    path = java_path(folder)
    compiler = [needed("javac", what="Java"), *(f"-J{option}" for option in SMALL_JVM)]
    run([*compiler, "-cp", path, "Verifier.java", "Genuine.java"], cwd=folder)
    return [needed("java", what="Java"), *SMALL_JVM, "-cp", path, "Verifier"]


def php(folder: Path) -> list[str]:
    program = needed("php", what="PHP")
    init = official_sources() / "php" / "init.php"
    driver = (HERE / "php" / "verifier.php").read_text()
    (folder / "verifier.php").write_text(f"<?php\nrequire '{init}';\n{printed('php')}{driver}")
    return [program, "-d", "error_reporting=-1", "-d", "display_errors=1", "verifier.php"]


def ruby(folder: Path) -> list[str]:
    program = needed("ruby", what="Ruby")
    (folder / "verifier.rb").write_text(printed("ruby") + (HERE / "ruby" / "verifier.rb").read_text())
    return [program, "-W1", "-I", str(official_sources() / "ruby" / "lib"), "verifier.rb"]


@pytest.mark.parametrize(
    "build", [python, javascript, golang, rust, java, php, ruby], ids=lambda f: f.__name__
)
def test_the_official_library_believes_what_was_delivered_and_nothing_else(build, delivered, tmp_path):
    command = build(tmp_path)
    good, bad = genuine(delivered), forged(delivered)
    said = run(command, cwd=tmp_path, given="".join(f"{each.line}\n" for each in (good | bad).values()))
    answers = dict(zip(good | bad, said.split(), strict=True))
    assert answers == dict.fromkeys(good, "true") | dict.fromkeys(bad, "false")
