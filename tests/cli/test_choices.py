"""Options with a fixed set of values accept these and refuse the rest."""

import pytest

from hookline.cli import choices
from hookline.cli.commands import endpoints
from hookline.model import CircuitState, Ordering, Scope, Signature, Signing, State
from hookline.validate.dead_letter_filter import REASONS
from hookline.validate.endpoint_fields import BY_NAME
from server_process import run

NOT_FIELDS = {
    "url",
    "as_json",
    "fields",
    "endpoint_id",
}  # about the server, the output, any field, which endpoint
SHORT = {"endpoint_url": "url", "rate": "rate_limit"}
NOBODY = {"HOOKLINE_URL": "http://127.0.0.1:1"}  # a request would end with 3
ENDPOINT = f"ep_{'0' * 26}"
CREATE = ["endpoints", "create", "https://a.example/", "--event", "*"]


def test_the_values_are_those_of_the_server():
    assert tuple(State) == choices.STATES
    assert set(choices.STATES) - set(choices.FINISHED) == {State.PENDING}
    assert tuple(CircuitState) == choices.CIRCUITS
    assert tuple(REASONS) == choices.REASONS
    assert tuple(Signing) == choices.STYLES
    assert tuple(Ordering) == choices.ORDERINGS
    assert tuple(Signature) == choices.SIGNATURES
    assert tuple(Scope) == choices.SCOPES


@pytest.mark.parametrize("command", [endpoints.create, endpoints.update])
def test_an_option_of_an_endpoint_is_a_field_of_the_table(command):
    options = {option.name for option in command.params} - NOT_FIELDS
    assert {SHORT.get(option, option) for option in options} <= BY_NAME.keys()


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["deliveries", "list", "--state", "foo"], "pending"),
        (["deliveries", "list", "--state", "DEAD"], "pending"),
        (["deliveries", "list", "--state", ""], "pending"),
        (["events", "deliveries", f"evt_{'0' * 26}", "--state", "foo"], "pending"),
        (["replay", f"evt_{'0' * 26}", "--state", "dead", "--state", "pending"], "delivered"),
        (["dead", "list", "--reason", "foo"], "crash_limit"),
        (["dead", "replay", "--reason", "cancelled"], "crash_limit"),
        (["dead", "discard", "--yes", "--reason", "foo"], "crash_limit"),
        (["endpoints", "list", "--circuit", "half-open"], "half_open"),
        ([*CREATE, "--signing", "foo"], "classic"),
        ([*CREATE, "--ordering", "foo"], "strict"),
        ([*CREATE, "--retry", "foo"], "patient"),
        (["endpoints", "update", ENDPOINT, "--ordering", "foo"], "strict"),
        (["endpoints", "update", ENDPOINT, "--retry", "bris"], "Did you mean brisk?"),
        (["endpoints", "rotate", ENDPOINT, "--signature", "v2"], "v1a"),
        (["keys", "create", "--scope", "foo"], "publish"),
        (["sign", "--style", "foo"], "classic"),
        (["verify", "--style", "foo"], "classic"),
        (["completion", "tcsh"], "fish"),
        (["events", "list", "--type", "a b"], "1 to 128"),
        (["events", "list", "--account", ""], "1 to 64"),
        (["deliveries", "list", "--type", "a..b"], "1 to 128"),
        (["deliveries", "list", "--account", "a/b"], "1 to 64"),
        (["deliveries", "list", "--endpoint", "foo"], "not an endpoint id, such as ep_0"),
        (["deliveries", "list", "--event", f"dlv_{'0' * 26}"], "not an event id, such as evt_0"),
        (["replay", f"evt_{'0' * 26}", "--endpoint", "ep_0"], "at least 8 characters"),
        (["dead", "list", "--endpoint", "foo"], "not an endpoint id"),
        (["dead", "discard", "--yes", "--account", "a b"], "1 to 64"),
        (["dead", "replay", "--type", "*"], "1 to 128"),
        (["endpoints", "list", "--account", "a b"], "1 to 64"),
        (["endpoints", "list", "--type", "order.*"], "1 to 128"),
        ([*CREATE, "--account", "a b"], "1 to 64"),
        (["listen", "--register", "--account", "a b"], "1 to 64"),
    ],
)
def test_another_value_is_a_usage_error_before_anything_is_asked(tmp_path, arguments, allowed):
    done = run(*arguments, cwd=tmp_path, env=NOBODY)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert allowed in done.stderr
