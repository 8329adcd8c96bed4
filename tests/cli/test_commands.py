"""What the commands print, and how they end."""

import json
import os
import socket

import psycopg
import pytest

from hookline.errors import SchemaMissing, StoreRefused
from hookline.outbox import ddl
from hookline.store.migrations import Applied, Migration, refuse_unless_current
from server_process import ServerProcess, log_lines, run

KEY = {"HOOKLINE_API_KEY": "hlk_the_key_of_these_tests"}


def assert_one_line(result, code, *words):
    """Assert the exit code, and one line on stderr that says why."""
    assert (result.returncode, result.stdout) == (code, ""), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    if result.args[3] in ("serve", "worker"):
        [line] = log_lines(result.stderr)
        said = line["message"] if line["event"] == "process.failed" else ""
    else:
        prefix, _, said = result.stderr.partition(" ")
        assert prefix == "hookline:"
    assert said
    for word in words:
        assert word in said


def test_version_is_data(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == "hookline 0.1.0\n"
    assert run("version", cwd=tmp_path).stdout == "hookline 0.1.0\n"
    assert json.loads(run("version", "--json", cwd=tmp_path).stdout) == {"version": "0.1.0"}


@pytest.mark.parametrize(
    ("url", "dialect"),
    [("sqlite:///x.db", "sqlite"), ("postgresql://nobody@nowhere.example/x", "postgresql")],
)
def test_migrate_prints_the_table_of_an_outbox_and_opens_no_database(tmp_path, url, dialect):
    result = run("migrate", "--sql", "--database", url, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, ddl(dialect), "")
    assert list(tmp_path.iterdir()) == []


def test_migrate_says_what_it_applied_and_then_that_nothing_is_left(tmp_path):
    first = run("migrate", "--database", "sqlite:///x.db", cwd=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines()[0] == "0001_tables"
    again = run("migrate", "--database", "sqlite:///x.db", cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "The schema is up to date.\n")
    as_json = run("migrate", "--json", "--database", "sqlite:///x.db", cwd=tmp_path)
    assert json.loads(as_json.stdout) == {"applied": []}


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["--port", "eighty"], KEY, ["--port", "'eighty'", "0 to 65,535"]),
        (["--port", "65536"], KEY, ["--port"]),
        (["--database", "mysql://x/y"], KEY, ["--database", "sqlite:///path.db"]),
        (["--database", "sqlite:///:memory:"], KEY, ["--database", "a file", "in memory"]),
        ([], {**KEY, "HOOKLINE_POLL_S": "never"}, ["HOOKLINE_POLL_S", "seconds"]),
        ([], {**KEY, "HOOKLINE_DATABSE": "x"}, ["HOOKLINE_DATABSE", "HOOKLINE_DATABASE"]),
        ([], {**KEY, "HOOKLINE_ALLOW_NETWORKS": "10.0.0.1/8"}, ["HOOKLINE_ALLOW_NETWORKS"]),
        ([], {**KEY, "HOOKLINE_CA_FILE": "none.pem"}, ["ca_file", "none.pem", "No such file"]),
        ([], {**KEY, "HOOKLINE_CA_FILE": "/dev/null"}, ["ca_file", "/dev/null", "no certificate"]),
        ([], {**KEY, "HOOKLINE_CA_FILE": "/"}, ["ca_file", "cannot be read", "directory"]),
        ([], {**KEY, "HOOKLINE_EGRESS_PROXY": "proxy"}, ["HOOKLINE_EGRESS_PROXY", "http://host:port"]),
        (["--dev", "--host", "0.0.0.0"], {}, ["--host", "loopback"]),
        (["--dev", "--host", "127.0.0.1.example"], {}, ["loopback"]),
        (["--dev", "--host", "localhost.example"], {}, ["loopback"]),
        (["--dev", "--host", "::"], {}, ["loopback"]),
        (["--dev"], {"HOOKLINE_HOST": "10.0.0.1"}, ["10.0.0.1", "loopback"]),
    ],
)
def test_a_bad_value_is_a_usage_error(tmp_path, arguments, env, words):
    assert_one_line(run("serve", *arguments, cwd=tmp_path, env=env), 2, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_too_does_not_start_with_a_file_of_authorities_that_cannot_be_used(tmp_path):
    assert_one_line(
        run("worker", cwd=tmp_path, env={"HOOKLINE_CA_FILE": "none.pem"}), 2, "ca_file", "none.pem"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_bad_file_is_a_usage_error(tmp_path):
    (tmp_path / "hookline.toml").write_text("prot = 8080\n")
    assert_one_line(run("serve", "--dev", cwd=tmp_path), 2, "hookline.toml", "prot", "port")


@pytest.mark.parametrize("arguments", [["serve", "--nope"], ["nope"], ["serve", "extra"]])
def test_an_unknown_word_is_a_usage_error(tmp_path, arguments):
    result = run(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_a_port_in_use_is_a_failure(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert_one_line(run("serve", "--dev", "--port", port, cwd=tmp_path), 1, "cannot listen", port)


def test_an_address_of_another_machine_is_a_failure(tmp_path):
    assert_one_line(
        run("serve", "--host", "192.0.2.1", cwd=tmp_path, env=KEY), 1, "cannot listen", "192.0.2.1"
    )


@pytest.mark.parametrize("command", [["serve", "--dev", "--port", "0"], ["migrate"]])
def test_a_file_that_cannot_be_written_is_a_failure(tmp_path, command):
    result = run(*command, "--database", "sqlite:///missing/folder/x.db", cwd=tmp_path)
    assert_one_line(result, 1, "missing/folder/x.db")


def test_a_file_that_the_system_will_not_create_is_named_with_the_system_s_reason(tmp_path):
    result = run("migrate", "--database", "sqlite:////proc/x.db", cwd=tmp_path)
    assert_one_line(result, 1, "/proc/x.db: it cannot be created there (No such file or directory)")


@pytest.mark.parametrize("command", [["serve", "--dev", "--port", "0"], ["migrate"]])
def test_a_file_that_is_no_database_is_a_failure(tmp_path, command):
    (tmp_path / "x.db").write_bytes(os.urandom(8_192))
    assert_one_line(run(*command, "--database", "sqlite:///x.db", cwd=tmp_path), 1)


def test_a_second_server_on_one_file_is_refused(tmp_path):
    with ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as first:
        result = run("serve", "--dev", "--port", "0", "--database", "sqlite:///x.db", cwd=tmp_path)
        assert_one_line(result, 1, "x.db")
        assert first.stop() == 0


@pytest.mark.parametrize("command", [["serve", "--dev", "--port", "0"], ["migrate"]])
def test_a_database_that_does_not_answer_is_unreachable(tmp_path, command):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"postgresql://me:canary@127.0.0.1:{closed.getsockname()[1]}/x"
        result = run(*command, "--database", url, cwd=tmp_path)
    assert_one_line(result, 3)
    assert "canary" not in result.stderr


@pytest.mark.parametrize("command", [["keys", "list"], ["migrate", "--dry-run"]])
def test_a_database_that_is_silent_is_said_to_be(tmp_path, command):
    with socket.socket() as silent:  # as a PostgreSQL that is stopped: the kernel accepts connections
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/x"
        result = run(*command, "--database", url, cwd=tmp_path)
    assert_one_line(result, 3, "cannot be reached: no answer within 4 seconds")


def test_a_wrong_password_is_a_failure_and_is_not_shown(postgres_server, tmp_path):
    url = postgres_server.url(user="guarded", password="canary")
    result = run("serve", "--dev", "--port", "0", "--database", url, cwd=tmp_path)
    assert result.returncode in (1, 3)
    assert "canary" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_empty_postgresql_is_brought_up_by_itself(postgres_server, tmp_path):
    name = postgres_server.create_database()
    with ServerProcess("--dev", "--database", postgres_server.url(name), cwd=tmp_path) as process:
        assert process.stop() == 0
    again = run("migrate", "--database", postgres_server.url(name), cwd=tmp_path)
    assert (again.stdout, again.stderr) == ("", "The schema is up to date.\n")
    postgres_server.drop_database(name)


def test_a_newer_schema_is_refused(postgres_server, tmp_path):
    with postgres_server.fresh_database() as url:
        with psycopg.connect(url) as session:
            session.execute(
                "INSERT INTO hookline.schema_migrations (number, name, checksum) VALUES (9999, '9999_later', 'x')"
            )
            session.execute("UPDATE hookline.schema_serves SET level = 9999")
        result = run("serve", "--dev", "--port", "0", "--database", url, cwd=tmp_path)
        assert_one_line(result, 1, "9999_later")


def test_an_older_schema_is_told_apart_from_none():
    known = [Migration(number, f"000{number}_x", "sum", "") for number in (1, 2)]
    with pytest.raises(SchemaMissing):
        refuse_unless_current(known, [], serves=None)
    with pytest.raises(StoreRefused, match=r"missing: 0002_x\): run `hookline migrate`") as caught:
        refuse_unless_current(known, [Applied(1, "0001_x", "sum")], serves=1)
    assert not isinstance(caught.value, SchemaMissing)
