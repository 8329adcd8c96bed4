"""The body of a publish is read exactly.

The quick check for duplicate keys is compared with a plain parse of the whole body.
"""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.api.publishing.envelope import read_batch, read_object, read_publication
from hookline.errors import HooklineError, Invalid, Unreadable
from hookline.pipeline.intake.drafts import Draft


def read(body: bytes, **how: Any) -> Draft:
    return read_publication(body, **{"limit_bytes": 1 << 20, "now": 0.0, **how})


def escaped(text: str) -> str:
    """The same JSON string with its first character escaped."""
    return f'"\\u{ord(text[0]):04x}{text[1:]}"'


SPACE = st.sampled_from(["", " ", "\n\t", "  "])
KEYS = st.sampled_from(["type", "payload", "account", "idempotency_key", "deliver_at"])
VALUES = st.sampled_from(
    [
        '"type"',
        '"payload"',
        '"account"',
        '"a"',
        "null",
        '"\\u0061"',
        '"a\\"payload\\":1"',
        '{"type":"payload"}',
        '{"payload":{"payload":"payload"}}',
        '["\\"", "\\\\"]',
        '"\\"payload\\":"',
        "1",
    ]
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    fields = []
    for key in draw(st.permutations(["type", "payload"])) + draw(st.lists(KEYS, max_size=3)):
        name = escaped(key) if draw(st.integers(0, 9)) == 0 else f'"{key}"'
        value = (
            draw(VALUES)
            if key == "payload"
            else draw(st.sampled_from(['"a"', '"payload"', '"type"', '"\\u0061"']))
        )
        fields.append(f"{draw(SPACE)}{name}{draw(SPACE)}:{draw(SPACE)}{value}{draw(SPACE)}")
    return "{" + ",".join(fields) + "}"


def verdict(body: bytes) -> Draft | str:
    try:
        return read(body)
    except Unreadable as error:
        return error.code
    except Invalid as error:
        return error.pointer


@settings(max_examples=500)
@given(bodies())
def test_a_key_given_twice_is_found_however_it_is_spelled(text):
    pairs = json.loads(text, object_pairs_hook=list)
    result = verdict(text.encode())
    if len({key for key, _ in pairs}) < len(pairs):
        assert result == "duplicate_key"
    elif "deliver_at" in dict(pairs):
        assert result == "/deliver_at"
    else:
        assert isinstance(result, Draft)
        assert result.payload in text.encode()
        assert json.loads(result.payload) == json.loads(text)["payload"]


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused_by_an_error_of_ours(body):
    for reader in (read, read_batch, read_object):
        with contextlib.suppress(HooklineError):
            reader(body)


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.floats(),
        lambda x: st.lists(x) | st.dictionaries(KEYS | st.text(), x),
    )
)
def test_any_json_is_read_or_refused_by_an_error_of_ours(value):
    body = json.dumps(value).encode()
    for reader in (read, read_batch, read_object):
        with contextlib.suppress(HooklineError):
            reader(body)


def test_absent_and_null_are_the_same():
    plain = read(b'{"type":"a","payload":1}')
    assert read(b'{"type":"a","payload":1,"account":null,"idempotency_key":null,"deliver_at":null}') == plain
    assert plain == Draft("a", b"1", "default", None, None)


def test_all_fields_are_read():
    body = b'{"deliver_at":"1970-01-01T00:01:00Z","payload": {"a" : 1} ,"idempotency_key":"k","type":"a.b","account":"x"}'
    assert read(body) == Draft("a.b", b'{"a" : 1}', "x", "k", 60.0)


def test_a_batch_keeps_each_event_s_own_bytes():
    assert read_batch(b' { "events" : [ {"a": 1} , 2,"x" ] } ') == [b'{"a": 1}', b"2", b'"x"']


def test_a_payload_may_be_as_deep_as_allowed_in_a_batch_too():
    deep = b"[" * 64 + b"]" * 64
    (item,) = read_batch(b'{"events":[{"type":"a","payload":' + deep + b"}]}")
    assert read(item).payload == deep


@pytest.mark.parametrize("spelling", [b'"events"', b'"\\u0065vents"'])
def test_events_given_twice_is_refused(spelling):
    with pytest.raises(Unreadable) as caught:
        read_batch(b'{"events":[1],' + spelling + b":[1]}")
    assert caught.value.code == "duplicate_key"
