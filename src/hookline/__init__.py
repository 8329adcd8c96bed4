"""hookline sends webhooks and does not lose them."""

from typing import TYPE_CHECKING, Any

from hookline import errors
from hookline.errors import HooklineError, naming_extras
from hookline.version import VERSION as __version__

if TYPE_CHECKING:
    from hookline.client.aio.client import HooklineClient
    from hookline.client.answers import Published
    from hookline.client.blocking.client import SyncHooklineClient
    from hookline.client.publishing import NewEvent
    from hookline.config import Settings
    from hookline.library.embedded import Hookline
    from hookline.library.threaded import SyncHookline

__all__ = [
    "Hookline",
    "HooklineClient",
    "HooklineError",
    "NewEvent",
    "Published",
    "Settings",
    "SyncHookline",
    "SyncHooklineClient",
    "__version__",
    "errors",
]

_HOMES = {
    "Hookline": "hookline.library.embedded",
    "HooklineClient": "hookline.client.aio.client",
    "NewEvent": "hookline.client.publishing",
    "Published": "hookline.client.answers",
    "Settings": "hookline.config",
    "SyncHookline": "hookline.library.threaded",
    "SyncHooklineClient": "hookline.client.blocking.client",
}


def __getattr__(name: str) -> Any:
    # On demand: `hookline --help` and `hookline.receiver` must not pay for the server.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hookline' has no attribute {name!r}")
    from importlib import import_module

    with naming_extras(name):
        return getattr(import_module(home), name)
