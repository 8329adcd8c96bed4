"""A request copied as a curl command says what was sent, and nothing in it becomes a command."""

import json
import subprocess
from pathlib import Path

import pytest

from hookline.dashboard.pages.deliveries.curl import curl

DUMP = """#!/usr/bin/env python3
import json, sys
arguments = sys.argv[1:]
body = sys.stdin.buffer.read() if "@-" in arguments else b""
with open({out!r}, "w") as file:
    json.dump([[each.encode("utf-8", "surrogateescape").hex() for each in arguments], body.hex()], file)
"""

HOSTILE = [
    b"plain",
    b"",
    b"it's",
    b"'; touch broken; echo '",
    b"$(touch broken)`touch broken`${HOME}",
    b'"\\" \\',
    b"line\nfeed\r\n\ttab\n",
    b"'\n; touch broken\n#",
    b"\\'; touch broken; '\n",
    b"!! !touch ^a^b",
    b"nul\0in\0side % %s \\n \xff",
    b"@/etc/passwd",
    b"-o broken",
    "żółć \u202e\u2028 \U0001f600".encode(),
    b"\xff\xfe' \x1b[2J",
    bytes(range(256)) * 2,
    b"\n",
]


def run(command: str, folder: Path) -> tuple[list[bytes], bytes]:
    (folder / "bin").mkdir(exist_ok=True)
    fake = folder / "bin" / "curl"
    fake.write_text(DUMP.format(out=str(folder / "out.json")))
    fake.chmod(0o755)
    path = f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    subprocess.run(
        ["bash", "--norc", "-c", command], cwd=folder, env={"PATH": path, "LC_ALL": "C.UTF-8"}, check=True
    )
    assert sorted(each.name for each in folder.iterdir()) == ["bin", "out.json"], "a command got out"
    arguments, body = json.loads((folder / "out.json").read_text())
    return [bytes.fromhex(each) for each in arguments], bytes.fromhex(body)


@pytest.mark.parametrize("body", HOSTILE)
def test_the_body_arrives_byte_by_byte(body: bytes, tmp_path: Path):
    arguments, piped = run(
        curl("https://a.example/", {"content-type": "application/json"}, body, file_name="f"), tmp_path
    )
    given = arguments[arguments.index(b"--data-binary") + 1]
    if given == b"@-":
        given = piped
    else:
        assert not given.startswith(b"@")
    assert given == body


@pytest.mark.parametrize("value", [each for each in HOSTILE if b"\0" not in each])
def test_urls_and_headers_are_words(value: bytes, tmp_path: Path):
    text = value.decode("utf-8", "surrogateescape")
    command = curl(f"https://a.example/{text}", {"x-a": text, "authorization": "***"}, b"{}", file_name="f")
    arguments, _ = run(command, tmp_path)
    assert arguments[arguments.index(b"--url") + 1] == b"https://a.example/" + value
    headers = [arguments[n + 1] for n, each in enumerate(arguments) if each == b"--header"]
    assert headers == [b"x-a: " + value if value else b"x-a;", b"authorization: ***"]


def test_a_header_that_names_a_file_is_left_out(tmp_path: Path):
    arguments, _ = run(curl("https://a.example/", {"@/etc/passwd": "x"}, b"{}", file_name="f"), tmp_path)
    assert b"--header" not in arguments


def test_a_long_body_is_read_from_the_file_that_was_downloaded(tmp_path: Path):
    arguments, _ = run(curl("https://a.example/", {}, b"1" * 70_000, file_name="evt_1.json"), tmp_path)
    assert arguments[-1] == b"@evt_1.json"
