"""The secrets in a database are sealed and unsealed from a shell."""

import json
import sqlite3
from contextlib import closing

import httpx
import pytest

from server_process import ServerProcess, run

API_KEY, FIRST, SECOND = "hlk_the_key_of_these_tests", "f" * 40, "s" * 40
DATABASE = ("--database", "sqlite:///x.db")


def stored(path) -> str:
    """Everything in the tables that hold secrets, as anybody with the file sees it."""
    with closing(sqlite3.connect(path / "x.db")) as connection:
        return "".join(connection.iterdump())


@pytest.fixture
def secret(tmp_path):
    """A database with one endpoint, made by a server without a key; its secret."""
    with ServerProcess(*DATABASE, cwd=tmp_path, env={"HOOKLINE_API_KEY": API_KEY}) as server:
        answer = httpx.post(
            f"{server.url}/v1/endpoints",
            json={"url": "https://hooks.example.com/", "events": ["*"]},
            headers={"authorization": f"Bearer {API_KEY}"},
            trust_env=False,
            timeout=30,
        )
        created: str = answer.json()["secret"]
    return created


def test_secrets_are_sealed_change_keys_and_are_plain_again(tmp_path, secret):
    assert secret in stored(tmp_path)
    sealed = run("secrets", "seal", "--json", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": FIRST})
    assert (sealed.returncode, json.loads(sealed.stdout)) == (0, {"sealed": 1, "accounts": 0}), sealed.stderr
    assert secret not in stored(tmp_path)

    again = run("secrets", "seal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": FIRST})
    assert again.stdout == "Encrypted the secrets of 0 endpoints.\n"
    wrong = run("secrets", "unseal", "--yes", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": SECOND})
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)

    both = {"HOOKLINE_SECRET_KEY": f"{SECOND},{FIRST}"}
    assert (
        run("secrets", "seal", *DATABASE, cwd=tmp_path, env=both).stdout
        == "Encrypted the secrets of 1 endpoint.\n"
    )
    unsealed = run("secrets", "unseal", "--yes", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": SECOND})
    assert unsealed.stdout == "Decrypted the secrets of 1 endpoint.\n", unsealed.stderr
    assert secret in stored(tmp_path)
    other = run("secrets", "seal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": "n" * 32})
    assert other.stdout == "Encrypted the secrets of 1 endpoint.\n", other.stderr


def test_a_server_with_a_wrong_key_or_none_says_so_and_does_not_start(tmp_path, secret):
    run("secrets", "seal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": FIRST})
    for env, code in (({"HOOKLINE_SECRET_KEY": SECOND}, 2), ({}, 1)):
        refused = run(
            "serve", "--port", "0", *DATABASE, cwd=tmp_path, env={"HOOKLINE_API_KEY": API_KEY, **env}
        )
        assert (refused.returncode, refused.stderr.count("\n")) == (code, 1), refused.stderr
        assert "HOOKLINE_SECRET_KEY" in refused.stderr
        assert SECOND not in refused.stderr


def test_without_a_key_there_is_nothing_to_seal_with(tmp_path, secret):
    for verb in (["seal"], ["unseal", "--yes"]):
        refused = run("secrets", *verb, *DATABASE, cwd=tmp_path)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_unsealing_is_not_done_without_being_asked_for(tmp_path, secret):
    refused = run("secrets", "unseal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": FIRST})
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    "key", ["short", "x" * 257, "with a space in it, and long enough to be one", "é" * 40]
)
def test_a_key_that_will_not_do_is_refused_and_not_repeated(tmp_path, key):
    refused = run("secrets", "seal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": key})
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert key not in refused.stderr


def test_what_is_sealed_with_which_key_is_counted_and_an_old_key_may_go_when_nothing_needs_it(
    tmp_path, secret
):
    def status(key: str) -> tuple[int, str]:
        done = run("secrets", "status", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": key})
        assert done.stderr == ""
        return done.returncode, done.stdout

    assert status("") == (
        1,
        "Encrypted with the first key: 0 endpoints, 0 accounts.\nIn plain text: 1 endpoint, 0 accounts.\n"
        "HOOKLINE_SECRET_KEY is not set.\n",
    )
    assert status(FIRST)[1].endswith("Keep every key, and run `hookline secrets seal`.\n")
    run("secrets", "seal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": FIRST})
    assert status(FIRST) == (
        0,
        "Encrypted with the first key: 1 endpoint, 0 accounts.\nAll secrets are encrypted with this key.\n",
    )
    both = f"{SECOND},{FIRST}"
    assert status(both) == (
        1,
        "Encrypted with the first key: 0 endpoints, 0 accounts.\n"
        "Encrypted with another key that is set: 1 endpoint, 0 accounts.\n"
        "Keep every key, and run `hookline secrets seal`.\n",
    )
    assert status(SECOND)[1].endswith("Keep every key, and set the one that is missing.\n")
    run("secrets", "seal", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": both})
    assert status(both) == (
        0,
        "Encrypted with the first key: 1 endpoint, 0 accounts.\n"
        "Only the first key is needed. Remove the others when every process has this first key.\n",
    )
    assert status(SECOND)[0] == 0
    as_json = run("secrets", "status", "--json", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": FIRST})
    assert as_json.returncode == 1
    found = json.loads(as_json.stdout)
    assert (found["mark"], found["endpoints"]["closed"], found["older_keys_needed"]) == ("closed", 1, True)


def test_urls_of_accounts_are_sealed_unsealed_and_looked_at_by_doctor(tmp_path):
    with ServerProcess(*DATABASE, cwd=tmp_path, env={"HOOKLINE_API_KEY": API_KEY}) as server:
        answer = httpx.put(
            f"{server.url}/v1/accounts/acme",
            json={"notify": {"slack": "https://chat.example.com/T0k3n"}},
            headers={"authorization": f"Bearer {API_KEY}"},
            trust_env=False,
            timeout=30,
        )
        assert answer.status_code == 200

    def finding(env: dict[str, str]) -> tuple[str, str]:
        said = json.loads(run("doctor", "--json", *DATABASE, cwd=tmp_path, env=env).stdout)
        [each] = [each for each in said if each["check"] == "secret_key"]
        return each["level"], each["detail"]

    key = {"HOOKLINE_SECRET_KEY": FIRST}
    assert finding(key) == ("warn", "the secrets of 1 account are still stored in plain text")
    sealed = run("secrets", "seal", *DATABASE, cwd=tmp_path, env=key)
    assert sealed.stdout == "Encrypted the secrets of 0 endpoints and 1 account.\n"
    assert "T0k3n" not in stored(tmp_path)
    assert finding(key) == ("ok", "secrets are encrypted")
    assert finding({})[0] == "bad"
    refused = run("serve", "--port", "0", *DATABASE, cwd=tmp_path, env={"HOOKLINE_API_KEY": API_KEY})
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
    assert "HOOKLINE_SECRET_KEY is not set" in refused.stderr
    unsealed = run("secrets", "unseal", "--yes", *DATABASE, cwd=tmp_path, env=key)
    assert unsealed.stdout == "Decrypted the secrets of 0 endpoints and 1 account.\n"
    assert "T0k3n" in stored(tmp_path)
