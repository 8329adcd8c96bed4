"""hookline sends webhooks and does not lose them."""

from typing import TYPE_CHECKING, Any

from hookline.version import VERSION as __version__

if TYPE_CHECKING:
    from hookline.app import Hookline, PublishedEvent
    from hookline.client import HooklineClient, SyncHooklineClient
    from hookline.config import Settings

__all__ = ["Hookline", "HooklineClient", "PublishedEvent", "Settings", "SyncHooklineClient", "__version__"]

_HOMES = {
    "Hookline": "hookline.app",
    "HooklineClient": "hookline.client",
    "PublishedEvent": "hookline.app",
    "Settings": "hookline.config",
    "SyncHooklineClient": "hookline.client",
}


def __getattr__(name: str) -> Any:
    # On demand: `hookline --help` and `hookline.receiver` must not pay for the server.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hookline' has no attribute {name!r}")
    from importlib import import_module

    from hookline.errors import naming_extras

    with naming_extras(name):
        return getattr(import_module(home), name)
