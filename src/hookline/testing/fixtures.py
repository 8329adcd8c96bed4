"""pytest fixtures for an application's tests.

`hookline.testing.plugin` gives them to every project. Where pytest loads no plugins by itself, a conftest.py names this
module: `pytest_plugins = ["hookline.testing.fixtures"]`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hookline.testing.receiver import WebhookReceiver
    from hookline.testing.running import HooklineServer


@pytest.fixture
def webhook_receiver() -> "Iterator[WebhookReceiver]":
    """A receiver that keeps and verifies what arrives."""
    from hookline.testing import WebhookReceiver  # here, as below: only tests that use it pay for the import

    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def hookline_server() -> "Iterator[HooklineServer]":
    """A hookline with an empty database, which answers HTTP at `url`."""
    from hookline.testing import serving_hookline

    with serving_hookline() as server:
        yield server
