"""What a scope allows."""

import pytest

from hookline.model import Scope
from hookline.rules.scopes import allows

PUBLISH, READ, ADMIN = Scope.PUBLISH, Scope.READ, Scope.ADMIN


@pytest.mark.parametrize(
    ("held", "allowed"),
    [
        ((), set()),
        ((PUBLISH,), {PUBLISH}),
        ((READ,), {READ}),
        ((PUBLISH, READ), {PUBLISH, READ}),
        ((ADMIN,), {PUBLISH, READ, ADMIN}),
        ((READ, ADMIN), {PUBLISH, READ, ADMIN}),
    ],
)
def test_admin_includes_the_others_which_do_not_include_each_other(held, allowed):
    assert {scope for scope in Scope if allows(held, scope)} == allowed
