"""Which fixtures can an application's tests ask for?

They are asked for by name in a conftest.py: `pytest_plugins = ["hookline.testing.fixtures"]`. Not by an entry
point: whoever has hookline installed does not want it in every test run. pytest is needed here and nowhere else.
"""

from collections.abc import Iterator

import pytest

from hookline.testing.receiver import WebhookReceiver
from hookline.testing.running import HooklineServer, serving_hookline


@pytest.fixture
def webhook_receiver() -> Iterator[WebhookReceiver]:
    """A receiver that keeps and verifies what arrives."""
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def hookline_server() -> Iterator[HooklineServer]:
    """A hookline with an empty database, to be called over HTTP at `url`."""
    with serving_hookline() as server:
        yield server
