"""The client knows every call that the server answers, and every field that it shows."""

import inspect
import re
from typing import Any, get_args, get_origin

import msgspec
import pytest

from hookline.api import call as api_call
from hookline.api.routes import table as routes
from hookline.app import Hookline
from hookline.client import SyncHooklineClient
from hookline.client.answers import Page
from hookline.config import Settings
from tests.client.test_calls import CALLS, made

# What the clients read in their own way (`publishing`), tested there.
READ_BY_HAND = {"POST /v1/events", "POST /v1/events/batch"}


def served() -> dict[str, api_call.Call]:
    hookline = Hookline("sqlite:///never-opened.db", settings=Settings(dev=True))
    # Paths outside /v1 are for probes and people: no program reads them.
    return {f"{call.method} {call.path}": call for call in routes(hookline) if call.path.startswith("/v1/")}


SERVED = served()


def shape(request_line: str) -> re.Pattern[str]:
    """The shape of a call's path."""
    return re.compile(re.sub(r"\\{\w+\\}", "[^/?]+", re.escape(request_line)) + r"(\?.*)?")


def asked() -> dict[str, tuple[str, Any]]:
    """By the server's request line: the client's method, and the call that it makes."""
    found = {}
    for ask, line, _ in CALLS:
        for request_line in sorted(SERVED, key=lambda each: "{" in each):  # fixed paths before those with ids
            if shape(request_line).fullmatch(line):
                [method] = [name for name in ask.__code__.co_names if hasattr(SyncHooklineClient, name)]
                found[request_line] = (method, made(ask))
                break
    return found


ASKED = asked()


@pytest.mark.parametrize("request_line", SERVED)
def test_the_client_has_a_method_for(request_line):
    assert request_line in ASKED


@pytest.mark.parametrize("request_line", ASKED)
def test_a_method_takes_every_parameter_of(request_line):
    call = SERVED[request_line]
    method, _ = ASKED[request_line]
    wanted = {field.name for field in msgspec.structs.fields(call.query)} - {"limit", "cursor"}
    assert wanted <= inspect.signature(getattr(SyncHooklineClient, method)).parameters.keys()


@pytest.mark.parametrize("request_line", ASKED)
def test_a_call_that_takes_an_idempotency_key_may_be_repeated(request_line):
    if SERVED[request_line].takes_key:
        assert ASKED[request_line][1].may_repeat


@pytest.mark.parametrize("request_line", sorted(ASKED.keys() - READ_BY_HAND))
def test_the_client_shows_every_field_that_the_server_shows(request_line):
    shown, read = SERVED[request_line].answer, ASKED[request_line][1].read
    if shown is None:
        assert read(b"") is None
        return
    assert missing(shown, read.__self__.type) == set()


def missing(shown: Any, known: Any, at: str = "") -> set[str]:
    """Fields of the server's that the client's type lacks, also within fields and lists."""
    for origin, wanted in ((api_call.Page, Page), (list, list), (tuple, list)):
        if get_origin(shown) is origin and get_origin(known) is wanted:
            return missing(get_args(shown)[0], get_args(known)[0], at)
    shown, known = only_struct(shown), only_struct(known)
    if shown is None or known is None:
        return set()
    theirs = {field.name: field.type for field in msgspec.structs.fields(shown)}
    ours = {field.name: field.type for field in msgspec.structs.fields(known)}
    lacking = {f"{at}/{name}" for name in theirs.keys() - ours.keys()}
    for name in theirs.keys() & ours.keys():
        lacking |= missing(theirs[name], ours[name], f"{at}/{name}")
    return lacking


def only_struct(kind: Any) -> Any:
    kinds = [kind, *get_args(kind)]
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
