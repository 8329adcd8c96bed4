"""`pip install hookline` is small, does what it is for, and names the extra that has the rest."""

import json
import re
from pathlib import Path

import pytest

from hookline.testing import serving_hookline
from installing.environments import Environment
from listener_process import ListenerProcess

MOST_BYTES = 10 * 1024 * 1024
PURPOSES = {
    "receiver": """
from hookline.crypto.signing import Mac, key_of, new_secret, sign_standard
from hookline.model import Signing
from hookline.receiver import ProcessOnce, verify
secret = new_secret()
signature = sign_standard(Mac(key_of(secret, Signing.STANDARD)), "evt_1", 1000, b"{}")
headers = {"webhook-id": "evt_1", "webhook-timestamp": "1000", "webhook-signature": signature, "webhook-event": "a"}
print(verify(secret, headers, b"{}", now=1000.0).id)
""",
    "outbox": """
import sqlite3
from hookline import outbox
with sqlite3.connect(":memory:") as connection:
    connection.executescript(outbox.ddl("sqlite"))
    print(outbox.publish(connection, "order.paid", {"id": 42})[:4])
""",
    "a receiver for tests": """
from hookline.testing import ManualClock, WebhookReceiver
with WebhookReceiver() as receiver:
    receiver.assert_nothing_received()
print(receiver.url[:17])
""",
}
PRINTED = {"receiver": "evt_1", "outbox": "evt_", "a receiver for tests": "http://127.0.0.1:"}
FOR_SERVERS = [
    ["serve", "--dev"],
    ["worker"],
    ["migrate"],
    ["prune"],
    ["doctor"],
    ["secrets", "status"],
    ["keys", "list"],
]
NAMES = ["hookline.Hookline", "hookline.testing.running_hookline", "hookline.testing.serving_hookline"]


def test_it_is_three_packages_of_at_most_ten_megabytes(base):
    listed = json.loads(base.python("-m", "pip", "--disable-pip-version-check", "list", "--format", "json"))
    names = {each["name"].lower() for each in listed} - {"pip", "setuptools"}
    assert names == {"hookline", "click", "msgspec"}
    assert base.added_bytes <= MOST_BYTES


@pytest.mark.parametrize("purpose", PURPOSES)
def test_it_does_what_it_is_for(base, purpose):
    assert base.python("-c", PURPOSES[purpose]).strip() == PRINTED[purpose]


def test_its_client_and_its_commands_work_with_a_server_elsewhere(base, tmp_path):
    with serving_hookline() as server:
        env = {"HOOKLINE_URL": server.url, "XDG_STATE_HOME": str(tmp_path)}
        with ListenerProcess("--register", cwd=tmp_path, env=env, command=base.command) as ear:
            sent = base.run("send", "order.paid", '{"id": 42}', "--wait", cwd=tmp_path, env=env)
            assert sent.returncode == 0, sent.stderr
            assert ear.shown()["signature"] == {"is_good": True, "detail": ""}
            program = f"""
from hookline import SyncHooklineClient
with SyncHooklineClient({server.url!r}) as hooks:
    print(hooks.publish("order.paid", {{"id": 43}}).id)
"""
            assert base.python("-c", program).strip() == ear.shown()["event_id"]
            for command in (
                ["status"],
                ["top"],
                ["health"],
                ["alerts"],
                ["audit"],
                ["events", "list"],
                ["deliveries", "list"],
                ["dead", "list"],
                ["dead", "replay", "--all", "--yes"],
                ["endpoints", "list"],
                ["event-types", "list"],
                ["workers"],
                ["config", "show"],
            ):
                done = base.run(*command, cwd=tmp_path, env=env)
                assert (done.returncode, done.stderr.partition("installed")[1]) == (0, ""), (command, done)
            assert ear.end() == 0


def test_it_signs_and_verifies_by_hand(base, tmp_path):
    (tmp_path / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    (tmp_path / "body").write_text("{}")
    given = ("--secret-file", "secret")
    signed = base.run("sign", *given, "--type", "order.paid", "body", cwd=tmp_path)
    (tmp_path / "headers").write_text(signed.stdout)
    done = base.run("verify", *given, "--headers", "headers", "body", cwd=tmp_path)
    assert done.returncode == 0, (signed, done)


def one_line(base: Environment, arguments: list[str], folder: Path) -> str:
    done = base.run(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.splitlines()
    return line


def test_a_command_that_needs_a_server_s_packages_says_so_in_one_line(base, tmp_path):
    for arguments in FOR_SERVERS:
        said = one_line(base, arguments, tmp_path)
        assert re.fullmatch(
            rf"hookline: `hookline {arguments[0]}` needs \w+, which is not installed: pip install 'hookline\[server\]'\.",
            said,
        )
    assert list(tmp_path.iterdir()) == []  # no database was begun


@pytest.mark.parametrize("name", NAMES)
def test_so_does_a_name_of_the_library(base, name):
    module, _, what = name.rpartition(".")
    program = f"""
from hookline.errors import HooklineError
try:
    from {module} import {what}
    {what}()  # where the import alone loads little
except ImportError as error:
    print(isinstance(error, HooklineError), error)
"""
    said = base.python("-c", program)
    label = what if module == "hookline" else name
    assert re.fullmatch(
        rf"True {label} needs \w+, which is not installed: pip install 'hookline\[server\]'\.\n", said
    )


def test_another_import_that_fails_stays_what_it_is(base, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/structlog.py").write_text("import no_such_package_of_ours")
    program = "import sys; sys.path.insert(0, 'broken'); from hookline import Hookline; Hookline()"
    with pytest.raises(
        AssertionError, match="ModuleNotFoundError: No module named 'no_such_package_of_ours'"
    ):
        base.python("-c", program, cwd=tmp_path)
