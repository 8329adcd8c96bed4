"""Which bytes are accepted as a payload."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import TooLarge, Unreadable
from hookline.validate.payload import check, check_depth

LIMIT = 1 << 20


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b' {"a" : [1, 2.50, -0, 1e400] }\n',
        b'{"s":"x\\u0000y"}',
        b'{"k":1,"k":2}',
        b"9" * 5_000,
        b"12345678901234567890.123456789",
        '{"s":"é 😀"}'.encode(),
        b'"\\ud83d\\ude00"',
        b'{"__proto__":{"x":1}}',
        b"[" * 64 + b"]" * 64,
        b'["' + b"[" * 1_000 + b'"]',
        b'["\\"' + b"[{" * 100 + b'\\\\"]',
        b"[" + b",".join([b"[]"] * 500) + b"]",
        b'"' + b"a" * (LIMIT - 2) + b'"',
    ],
)
def test_one_json_value_passes_untouched(body):
    assert check(body, LIMIT) is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"  ", "invalid_json"),
        (b"1 2", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"a":1,}', "invalid_json"),
        (b"NaN", "invalid_json"),
        (b"-Infinity", "invalid_json"),
        (b"01", "invalid_json"),
        (b"'a'", "invalid_json"),
        (b'"\x01"', "invalid_json"),
        (b'"\\ud800"', "invalid_json"),
        (b'"\\udc00\\ud800"', "invalid_json"),
        (b'"\xff\xfe"', "invalid_json"),
        (b'"\xed\xa0\x80"', "invalid_json"),
        (b"\xef\xbb\xbf{}", "invalid_json"),
        ('{"a":1}'.encode("utf-16-le"), "invalid_json"),
        (bytes(range(256)), "invalid_json"),
        (b"[" * 65 + b"]" * 65, "too_deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "too_deep"),
        (b"[" * 1_000 + b"]" * 1_000, "too_deep"),
        (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
    ],
)
def test_anything_else_is_unreadable(body, code):
    with pytest.raises(Unreadable) as caught:
        check(body, LIMIT)
    assert caught.value.code == code


def test_the_limit_is_the_last_size_that_passes():
    check(b'"' + b"a" * 8 + b'"', 10)
    with pytest.raises(TooLarge) as caught:
        check(b'"' + b"a" * 9 + b'"', 10)
    assert caught.value.limit_bytes == 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(JSON, st.integers(0, 5), st.booleans())
def test_the_depth_is_that_of_a_plain_walk(value, limit, ascii_only):
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")
    try:
        check_depth(body, limit=limit)
        is_within = True
    except Unreadable:
        is_within = False
    assert is_within == (depth(value) <= limit)
