"""Remembers which endpoint belongs to a listener, and its secret, from one start to the next.

Each is a file that only this user can read, in `$XDG_STATE_HOME/hookline/listen` (`~/.local/state/hookline/listen`). The
server's address and the listener's name it: a listener at another port, or at another server, has another endpoint.
"""

import contextlib
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple


class KeptEndpoint(NamedTuple):
    """An endpoint that a listener created, or created before."""

    id: str
    secret: str


class KeptEndpoints:
    """The file of one listener."""

    def __init__(self, server: str, url: str, account: str | None) -> None:
        self._about = {"server": server.rstrip("/"), "url": url, "account": account}
        name = sha256(json.dumps(self._about, sort_keys=True).encode()).hexdigest()[:32]
        self.path = _folder() / f"{name}.json"

    def read(self) -> KeptEndpoint | None:
        """What was kept; None: nothing that can be read."""
        try:
            found = json.loads(self.path.read_bytes())
            kept = KeptEndpoint(found["id"], found["secret"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return kept if all(isinstance(each, str) for each in kept) else None

    def write(self, kept: KeptEndpoint) -> None:
        """Keep it in the place of what was kept before."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self.path.with_suffix(f".{os.getpid()}")
        try:
            # Nobody else may read it at any moment: it is created with its mode, and never written in place.
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump({**self._about, **kept._asdict()}, file, indent=1)
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def forget(self) -> None:
        """Keep nothing."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()


def _folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    # A relative path is to be ignored, says the specification of these variables.
    return Path(base if os.path.isabs(base) else os.path.expanduser("~/.local/state")) / "hookline/listen"
