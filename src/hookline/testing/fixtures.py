"""pytest fixtures for an application's tests.

A conftest.py loads them by name: `pytest_plugins = ["hookline.testing.fixtures"]`. There is no entry point: not
everybody who has hookline installed wants them in every test run. Only this module needs pytest.
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
    """A hookline with an empty database, which answers HTTP at `url`."""
    with serving_hookline() as server:
        yield server
