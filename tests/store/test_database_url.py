"""A password in a database URL is never shown, however the URL is misspelt."""

import io
import traceback
from contextlib import redirect_stderr, redirect_stdout

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookline.app import Hookline, store_for
from hookline.config import Settings, load
from hookline.errors import ConfigError, HooklineError
from hookline.store.database_url import fault, has_password, is_plain, shown
from hookline.store.postgres.driver.faults import translated, while_connecting

FIRST, SECOND = "Kx7Qz", "Wv9Jb"  # of the password: a mistake between them must show neither
URLS = (
    f"postgresql://me:{FIRST}{SECOND}@db.example:5432/hooks",
    f"postgres://me:{FIRST}{SECOND}@[2001:db8::1]:5432/hooks?sslmode=require",
    f"postgresql://db.example/hooks?user=me&password={FIRST}{SECOND}&sslmode=require",
)
STRAY = (*"@:/?#[]%&= \t\n;,\\'\"+.\0é", "%zz", "://", "%00", "%40", ":0", "//")
SCHEMES = (
    "",
    "postgresql:",
    "postgresql:/",
    "postgresql:///",
    "postgre://",
    "mysql://",
    "http://",
    "sqlite:///",
)


@st.composite
def misspelt(draw):
    url = draw(st.sampled_from(URLS))
    at = draw(st.integers(0, len(url)))
    match draw(st.sampled_from(("scheme", "insert", "delete", "replace", "cut"))):
        case "scheme":
            return draw(st.sampled_from(SCHEMES)) + url.partition("://")[2]
        case "insert":
            return url[:at] + draw(st.sampled_from(STRAY)) + url[at:]
        case "delete":
            return url[:at] + url[at + 1 :]
        case "replace":
            return url[:at] + draw(st.sampled_from(STRAY)) + url[at + 1 :]
        case "cut":
            return url[:at]
    raise AssertionError


def assert_unmarked(text):
    assert FIRST[1:4] not in text, text
    assert SECOND[1:4] not in text, text


@given(misspelt())
@example(f"postgresql://me{FIRST}{SECOND}@db.example/hooks")
@example(f"postgresql://me:12/{FIRST}{SECOND}@db.example/hooks")
@example(f"postgresql://me:p@{FIRST}{SECOND}@db.example/hooks")
@example(f"postgresql://db.example/hooks&password={FIRST}{SECOND}")
@example(f"sqlite:///hooks.db?key={FIRST}{SECOND}")
def test_a_misspelt_url_never_shows_its_password(url):
    assert_unmarked(shown(url))
    assert_unmarked(fault(url) or "")
    for read in (
        lambda: load({"database": url}),
        lambda: load(environ={"HOOKLINE_DATABASE": url}),
        lambda: store_for(url),
        lambda: Hookline(url),
    ):
        try:
            said = repr(read())
        except HooklineError:
            said = traceback.format_exc(limit=0)  # the lines of this file above it hold the mark
        assert_unmarked(said)


@pytest.mark.parametrize(
    ("url", "as_shown"),
    [
        ("sqlite:///hookline.db", "sqlite:///hookline.db"),
        ("sqlite:////var/lib/hookline/x.db", "sqlite:////var/lib/hookline/x.db"),
        ("postgresql://me:pw@db:5432/x", "postgresql://me:***@db:5432/x"),
        ("postgresql://me:p%40w@db/x?sslmode=require", "postgresql://me:***@db/x?sslmode=require"),
        ("postgresql:///x?host=/var/run/postgresql", "postgresql:///x?host=/var/run/postgresql"),
        ("postgresql://db/x?user=me&password=pw", "postgresql://db/x?user=***&password=***"),
        ("postgresql://mepw@db/x", "postgresql://***@db/x"),
        ("postgresql://me%3Apw@db/x", "postgresql://***@db/x"),
        ("postgresql://me:p w@db/x", "postgresql://me:***@db/x"),
        ("postgresql://me pw@db/x", "postgresql://***@db/x"),
        ("postgresql://me:pw@[::1]:5432/x", "postgresql://me:***@[::1]:5432/x"),
        ("postgresql://db/x&pw", "postgresql://db/***"),
        ("postgresql://db/x?passwrod=pw", "postgresql://db/x?***"),
    ],
)
def test_a_url_is_shown_without_what_may_be_its_password(url, as_shown):
    assert fault(url) is None
    assert shown(url) == as_shown


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("me:pw@db/x", "begins with neither"),
        ("postgresql:/me:pw@db/x", "begins with neither"),
        ("postgresql:///me:pw@db/x", "an @ follows the host's /"),
        ("postgresql://me:p/w@db/x", "host and port"),
        ("postgresql://me:p@w@db/x", "more than one @"),
        ("postgresql://me:p\tw@db/x", "a control character"),
        ("postgresql://me:p%w@db/x", "a % without"),
        ("postgresql://me:p#w@db/x", "a # or a backslash"),
        ("postgresql://me:pw@db:99999/x", "host and port"),
        ("postgresql://me:pw@db:0/x", "the port"),
        ("postgresql://me:pw@[::1/x", "host and port"),
        ("postgresql://me;pw;db/x", "the host"),
        ("postgresql://db/x?password", "name=value"),
        ("sqlite://x.db", "begins with neither"),
        ("sqlite:///", "no path"),
        ("sqlite:///me:pw@db/x", "looks like the address of a server"),
        ("sqlite:///:memory:", "in memory"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_by_what_is_wrong_with_it(url, wrong):
    assert wrong in (fault(url) or "")
    with pytest.raises(ConfigError, match="the value is not valid for database") as caught:
        load(environ={"HOOKLINE_DATABASE": url})
    assert wrong in str(caught.value)
    assert shown(url) == "***"


def test_a_file_may_hold_the_url_in_the_wrong_place(tmp_path):
    file = tmp_path / "hookline.toml"
    for content in (
        f'[database]\nurl = "{URLS[0]}"\n',
        f'database = ["{URLS[0]}"]\n',
        f'database = "{URLS[0]}\n',
        f"database = {URLS[0]}\n",
        f'"{URLS[0]}" = 1\n',
        f'port = "{URLS[0]}"\n',
    ):
        file.write_text(content)
        with pytest.raises(ConfigError) as caught:
            load(file=file)
        assert_unmarked(str(caught.value))


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("setting", ["HOST", "URL", "PORT", "ALLOW_NETWORKS", "RETRY"])
def test_a_url_that_another_setting_was_given_is_not_shown(setting, url):
    with pytest.raises(ConfigError) as caught:
        load(environ={f"HOOKLINE_{setting}": url})
    assert_unmarked(str(caught.value))


def test_settings_show_no_url_that_cannot_be_read():
    for url in (URLS[0], URLS[0].replace("@", "@@"), URLS[2].replace("=", ":")):
        assert_unmarked(repr(Settings(database=url)))


def test_a_password_in_the_file_is_known_by_the_url():
    assert [has_password(url) for url in ("sqlite:///x.db", "postgresql://db/x", *URLS)] == [
        False, False, True, True, True,
    ]  # fmt: skip


def test_a_driver_s_words_are_shown_only_if_no_name_can_be_a_password():
    assert is_plain(URLS[0])
    assert not is_plain(f"postgresql://me{FIRST}@db/x")
    assert not is_plain(f"postgresql://me:pw@db/x&password={FIRST}")
    assert not is_plain(f"postgresql://me:pw@db/x?passwrod={FIRST}")
    with (
        pytest.raises(HooklineError) as caught,
        translated(),
        while_connecting(f"postgresql://me{FIRST}@db/x"),
    ):
        raise ValueError(f"bad query field: {FIRST}")
    assert_unmarked(
        "".join(traceback.format_exception(caught.value)).replace('"bad query field: {FIRST}"', "")
    )


@pytest.mark.parametrize(
    "line",
    [
        ["serve", "--database", URLS[0].replace("@", "@@")],
        ["serve", URLS[0]],
        [URLS[0]],
        ["serve", f"--databse={URLS[0]}"],
        ["serve", "--port", URLS[0]],
        ["config", "show", URLS[0]],
        ["doctor", "--database", URLS[0].replace("//", "/")],
        ["migrate", "--database", URLS[0].replace(":5432", ":port")],
    ],
)
def test_a_command_line_with_a_misspelt_url_is_refused_without_showing_it(line):
    from hookline.cli.root import root

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        root.main(line, standalone_mode=True)
    assert ended.value.code != 0
    assert_unmarked(out.getvalue() + err.getvalue())
