"""A setting that is refused does not show what may be a password or a key, whichever setting it was given to."""

import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookline.config import _READERS, PREFIX, SECRET, load
from hookline.errors import ConfigError

FIRST, SECOND = "Kx7QzKx7Qz4m", "Wv9JbWv9Jb2p"  # a mistake between them must show neither
SECRETS = (
    f"postgresql://me:{FIRST}{SECOND}@db.example:5432/hooks",
    f"postgres://me:{FIRST}{SECOND}@[2001:db8::1]:5432/hooks?sslmode=require",
    f"http://proxy:{FIRST}{SECOND}@proxy.example:3128",
    f"socks5://{FIRST}{SECOND}@10.0.0.1:1080",
    f"https://hooks.slack.com/services/T0/B0/{FIRST}{SECOND}",
    f"whsec_{FIRST}{SECOND}",
    f"hlk_{FIRST}{SECOND}",
    f"user={FIRST} password={SECOND}",
    f"me:{FIRST}{SECOND}",
)
STRAY = (*"@:/?#[]%&= \t\n;,\\'\"+.\0é", "%zz", "://", "%00", "%40", ":0", "//", "\u202e", "\u2044", "😀")
SCHEMES = ("", "postgresql:", "postgresql:/", "postgre://", "mysql://", "htp:/", "sqlite:///", "ｈttp://")
NAMES = sorted(_READERS)


@st.composite
def misspelt(draw):
    text = draw(st.sampled_from(SECRETS))
    at = draw(st.integers(0, len(text)))
    match draw(st.sampled_from(("as it is", "scheme", "insert", "delete", "long"))):
        case "scheme":
            return draw(st.sampled_from(SCHEMES)) + text.rpartition("://")[2]
        case "insert":
            return text[:at] + draw(st.sampled_from(STRAY)) + text[at:]
        case "delete":
            return text[:at] + text[at + 1 :]
        case "long":  # so long that what makes it a URL is cut off
            return text[:at] + draw(st.sampled_from("ab/ ")) * 120 + text[at:]
    return text


def said(read) -> str:
    """What a refusal says, also in a traceback."""
    try:
        read()
    except ConfigError:
        return traceback.format_exc(limit=0)
    return ""


def assert_unmarked(text):
    for half in (FIRST, SECOND):
        assert half[1:7] not in text, text


@given(value=misspelt(), name=st.sampled_from(NAMES))
@example(value=f"postgresql:/me:{'a' * 110}{FIRST}@db", name="port")
@example(value=FIRST + SECOND, name="smtp_port")
@example(value=f"{FIRST}{SECOND}\n", name="smtp_username")
@example(value=f"10.0.0.0/8,http://{FIRST}:{SECOND}@10.0.0.1", name="allow_networks")
def test_no_refusal_shows_a_credential(value, name):
    assert_unmarked(said(lambda: load({name: value})))
    assert_unmarked(said(lambda: load(environ={PREFIX + name.upper(): value})))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_refusal_of_a_line_of_the_file_shows_a_credential(tmp_path, name, secret):
    file = tmp_path / "hookline.toml"
    for value in (repr(secret), repr([secret]), repr([[secret]]), f"{{ x = {secret!r} }}"):
        file.write_text(f"{name} = {value}\n")
        assert_unmarked(said(lambda: load(file=file)))
    for broken in (f"{name} = {secret}\n", f'{name} = "{secret}\n', f'"{secret}" = 1\n', f"[{secret}]\n"):
        file.write_text(broken)
        assert_unmarked(said(lambda: load(file=file)))


def test_the_refusals_are_seen():
    """What the tests above look through is not empty: each kind of setting refuses something of it."""
    refusing = {name for name in NAMES if any(said(lambda: load({name: each})) for each in SECRETS)}  # noqa: B023 - called at once
    assert refusing >= set(NAMES) - SECRET - {
        "smtp_password",
        "smtp_username",
        "contact",
        "portal_name",
        "ca_file",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "eighty"),
        ("retry", "patience"),
        ("allow_networks", "10.0.0.1/8"),
        ("host", "a b"),
        ("dev", "?"),
    ],
)
def test_what_is_no_credential_is_still_shown(name, value):
    assert repr(value) in said(lambda: load({name: value}))
