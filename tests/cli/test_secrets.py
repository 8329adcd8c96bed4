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
