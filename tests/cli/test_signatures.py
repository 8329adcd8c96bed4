"""Commands sign and verify requests as servers and receivers do."""

import json
import subprocess
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from hookline.crypto.signing import new_secret, public_key_of
from hookline.model import Signature
from hookline.receiver import verify
from server_process import CEILING_S, COMMAND, environment, run

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CLASSIC = "a secret of our own".replace(" ", "-")
BODY = b'{"id":  42, "name": "\xc3\xa9"}\n'


def with_input(*arguments: str, cwd: Path, body: bytes = BODY) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*COMMAND, *arguments],
        input=body,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        timeout=CEILING_S,
        check=False,
    )


def test_what_is_signed_by_hand_is_believed_by_receivers(tmp_path):
    signed = with_input("sign", "--secret", SECRET, "--type", "order.paid", "--json", cwd=tmp_path)
    headers = json.loads(signed.stdout)
    assert Webhook(SECRET).verify(BODY, headers) == json.loads(BODY)
    assert verify(SECRET, headers, BODY).event_type == "order.paid"
    classic = with_input("sign", "--secret", CLASSIC, "--style", "classic", "--json", cwd=tmp_path)
    assert verify(CLASSIC, json.loads(classic.stdout), BODY).id.startswith("msg_")


def test_a_key_pair_signs_and_its_public_half_verifies(tmp_path):
    secret = new_secret(Signature.V1A)
    (tmp_path / "body").write_bytes(BODY)
    headers = run("sign", "--secret", secret, "--json", "body", cwd=tmp_path).stdout
    assert json.loads(headers)["webhook-signature"].startswith("v1a,")
    (tmp_path / "headers").write_text(headers)
    check = ("verify", "--headers", "headers", "body", "--secret")
    assert run(*check, public_key_of(secret), cwd=tmp_path).returncode == 0
    assert run(*check, public_key_of(new_secret(Signature.V1A)), cwd=tmp_path).returncode == 1


def test_a_signature_is_the_same_each_time(tmp_path):
    (tmp_path / "body").write_bytes(b"{}")
    (tmp_path / "secret").write_text(SECRET + "\n")
    arguments = ("--secret-file", "secret", "--id", "evt_1", "--at", "2026-01-01T00:00:00Z", "body")
    result = run("sign", *arguments, cwd=tmp_path)
    assert result.stdout.splitlines() == [
        "webhook-id: evt_1",
        "webhook-timestamp: 1767225600",
        f"webhook-signature: {Webhook(SECRET).sign('evt_1', moment(1767225600), '{}')}",
    ]
    assert run("sign", *arguments, cwd=tmp_path).stdout == result.stdout


def moment(timestamp: int):
    from datetime import UTC, datetime

    return datetime.fromtimestamp(timestamp, UTC)


@pytest.mark.parametrize("style", ["standard", "classic"])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_what_was_signed_is_verified_from_files(tmp_path, style, as_json):
    (tmp_path / "body").write_bytes(BODY)
    headers = run("sign", "--secret", SECRET, "--style", style, *as_json, "body", cwd=tmp_path).stdout
    (tmp_path / "headers").write_text(headers)
    good = run("verify", "--secret", SECRET, "--headers", "headers", "body", "--json", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    found = json.loads(good.stdout)
    assert (found["verified"], found["style"], found["secret_number"]) == (True, style, 0)
    second = run(
        *("verify", "--secret", OTHER, "--secret", SECRET, "--headers", "headers", "body"), cwd=tmp_path
    )
    assert "secret_number  1" in second.stdout
    bad = run("verify", "--secret", OTHER, "--headers", "headers", "body", cwd=tmp_path)
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == "hookline: not verified: The signature does not match the request.\n"
    changed = with_input(
        "verify", "--secret", SECRET, "--headers", "headers", "--json", cwd=tmp_path, body=b"{}"
    )
    assert (changed.returncode, json.loads(changed.stdout)["refusal"]) == (1, "wrong_signature")


def test_a_recording_is_too_old_unless_its_time_is_given(tmp_path):
    (tmp_path / "body").write_bytes(BODY)
    signed = run("sign", "--secret", SECRET, "--at", "1h", "body", cwd=tmp_path).stdout
    # As curl shows a request: marks, a request line, other headers.
    (tmp_path / "headers").write_text(
        "> POST /hook HTTP/1.1\n> Host: a.example:8443\n"
        + "".join(f"> {line}\n" for line in signed.splitlines())
    )
    check = ("verify", "--secret", SECRET, "--headers", "headers", "body")
    old = run(*check, cwd=tmp_path)
    assert (old.returncode, "more than 300 s ago" in old.stderr) == (1, True)
    assert run(*check, "--at", "59m", cwd=tmp_path).returncode == 0
    assert run(*check, "--tolerance", "2h", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sign"], "--secret"),
        (["sign", "--secret", SECRET, "--secret", OTHER], "one secret"),
        (["sign", "--secret", "garbage"], "'whsec_' followed by padded base64 of 24 to 64 bytes.\n"),
        (["sign", "--secret", SECRET, "--id", "a.b"], "--id"),
        (["sign", "--secret-file", "nowhere"], "cannot read nowhere"),
        (["verify", "--header", "a: b"], "--secret"),
        (["verify", "--secret", SECRET], "--header"),
        (["verify", "--secret", SECRET, "--header", "a"], "--header"),
        (["verify", "--secret", SECRET, "--headers", "empty"], "--headers: empty has no headers"),
    ],
)
def test_what_is_missing_or_wrong_is_a_usage_error_that_shows_no_secret(tmp_path, arguments, words):
    (tmp_path / "empty").write_text("POST /hook HTTP/1.1\n")
    result = with_input(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert words in result.stderr.decode()
    assert SECRET not in result.stderr.decode()
    assert result.stderr.count(b"\n") == 1
