"""An account sees what was done to its things, and not who of the operators did it."""

import msgspec
import pytest

from factories import an_audit_entry, ids
from hookline.model import Actor, ActorKind, Via
from hookline.rules.audit_view import as_seen_by

KEY = ids.key()


def by(kind, **fields):
    return Actor(kind=kind, key_id=KEY, name="night shift", hint="hlk_abcd", **fields)


@pytest.mark.parametrize("kind", ActorKind)
def test_an_operator_sees_everything(kind):
    entry = an_audit_entry(actor=by(kind))
    assert as_seen_by(entry, None) == entry


def test_what_was_done_with_a_key_of_the_account_is_shown_whole():
    entry = an_audit_entry(account="acme", actor=by(ActorKind.KEY, account="acme"))
    assert as_seen_by(entry, "acme") == entry


@pytest.mark.parametrize("kind", [kind for kind in ActorKind if kind is not ActorKind.PORTAL])
def test_of_operators_only_the_kind_is_told(kind):
    for bound in (None, "other"):
        entry = an_audit_entry(account="acme", actor=by(kind, account=bound))
        shown = as_seen_by(entry, "acme")
        assert shown == msgspec.structs.replace(entry, actor=Actor(kind=kind), address=None)


def test_visitors_of_the_portal_see_where_they_came_from_but_not_through_whose_key():
    entry = an_audit_entry(account="acme", actor=by(ActorKind.PORTAL), via=Via.PORTAL)
    assert as_seen_by(entry, "acme") == msgspec.structs.replace(entry, actor=Actor(kind=ActorKind.PORTAL))
