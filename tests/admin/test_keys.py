"""Which keys are valid, and what is stored of one."""

from hashlib import sha256

import pytest

from factories import NOW, ids
from hookline.admin.keys import KeyInput, new_key, shown
from hookline.errors import Invalid
from hookline.model import Key, Scope


def made(**fields):
    return new_key(KeyInput(**{"scopes": ["admin"], **fields}), id=ids.key(), now=NOW)


def test_a_key_has_256_random_bits_and_only_its_digest_is_kept():
    id = ids.key()
    key, text = new_key(KeyInput(scopes=["read"], name="shop", account="acme"), id=id, now=NOW)
    assert text.startswith("hlk_")
    assert len(text) == len("hlk_") + 43  # 256 bits, six per character
    assert key == Key(
        id=id,
        digest=sha256(text.encode()).digest(),
        hint=text[:8],
        name="shop",
        scopes=(Scope.READ,),
        account="acme",
        created_at=NOW,
    )
    assert text not in repr(key)
    assert len({made()[1] for _ in range(100)}) == 100


def test_a_key_is_shown_without_itself_but_to_whoever_made_it():
    key, text = made()
    assert shown(key, text).key == text
    assert text[8:] not in repr(shown(key))


def test_scopes_are_kept_once_and_in_one_order():
    key, _ = made(scopes=["read", "publish", "read"])
    assert key.scopes == (Scope.PUBLISH, Scope.READ)


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"scopes": None}, "/scopes", "publish, read, admin"),
        ({"scopes": []}, "/scopes", "one or more"),
        ({"scopes": "admin"}, "/scopes", "a list"),
        ({"scopes": {"admin": True}}, "/scopes", "a list"),
        ({"scopes": ["read", "writ"]}, "/scopes/1", "one or more"),
        ({"scopes": ["publsh"]}, "/scopes/0", "Did you mean publish?"),
        ({"scopes": ["ADMIN"]}, "/scopes/0", "publish, read, admin"),
        ({"scopes": [1]}, "/scopes/0", "publish, read, admin"),
        ({"scopes": ["read"] * 4}, "/scopes", "one or more"),
        ({"name": "x" * 201}, "/name", "200"),
        ({"name": 7}, "/name", "a string"),
        ({"name": "a\0b"}, "/name", "a string"),
        ({"name": "\ud800"}, "/name", "a string"),
        ({"account": ""}, "/account", "1 to 64"),
        ({"account": "a b"}, "/account", "1 to 64"),
        ({"account": 1}, "/account", "1 to 64"),
    ],
)
def test_what_will_not_do_is_refused_by_name(fields, pointer, words):
    with pytest.raises(Invalid) as caught:
        made(**fields)
    assert caught.value.pointer == pointer
    assert words in caught.value.detail
