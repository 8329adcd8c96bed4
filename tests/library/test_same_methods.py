"""hookline within a program and both clients have the same methods with the same arguments and results."""

import inspect
import re
from typing import Any

import pytest

from hookline import Hookline, HooklineClient, SyncHookline, SyncHooklineClient

# How each begins and ends, and what only a hookline of one's own can be asked.
OWN = {
    Hookline: {"start", "stop", "settings", "is_ready", "not_ready"},
    SyncHookline: {"start", "stop"},
    HooklineClient: {"close"},
    SyncHooklineClient: {"close"},
}


def methods(kind: type) -> dict[str, str]:
    """The public methods with their arguments and results; those of a coroutine as if it were none."""
    return {
        name: said(inspect.signature(getattr(kind, name)))
        for name, _ in inspect.getmembers(kind)
        if not name.startswith("_") and name not in OWN[kind]
    }


def said(signature: inspect.Signature) -> str:
    def shown(annotation: Any) -> str:
        return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    arguments = [
        f"{each.kind.name} {each.name}: {shown(each.annotation)} = {each.default!r}"
        for each in signature.parameters.values()
    ]
    text = f"({', '.join(arguments)}) -> {shown(signature.return_annotation)}"
    return re.sub(r"hookline\.client\.(aio|blocking)\.listing\.(Async)?Listing", "Listing", text)


@pytest.mark.parametrize("kind", [SyncHookline, HooklineClient, SyncHooklineClient])
def test_it_has_the_methods_of_the_library_with_the_same_arguments_and_results(kind):
    assert methods(kind) == methods(Hookline)


def test_there_are_methods_for_every_noun():
    wanted = {"publish", "publish_many", "events", "endpoints", "deliveries", "dead_letters", "replay_jobs"}
    assert wanted | {"endpoint_stats", "health", "status", "alerts"} <= methods(Hookline).keys()


@pytest.mark.parametrize("kind", OWN)
def test_a_method_says_what_it_does(kind):
    assert [name for name in {*methods(kind), *OWN[kind]} if not getattr(kind, name).__doc__] == []
