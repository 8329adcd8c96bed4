"""Chooses the share of the suite that this commit runs.

What is too much for every commit is dealt into four shares. A commit runs the share of its number, counted along first
parents: one commit always runs the same, and any four in a row run everything. A clone without history (shallow) takes
the number from the hash of its files instead: still the same for the same commit, but four in a row may leave a share
out. Without a repository it is share 0. HOOKLINE_TEST_SHARE=2 chooses a share by hand.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

SHARES = 4
CHOSEN = "HOOKLINE_TEST_SHARE"
HANDED_DOWN = "TEST_SHARE"  # the same, to the parts: what they test takes CHOSEN for a setting

T = TypeVar("T")


def dealt(every: Sequence[T], share: int) -> list[T]:
    """This share of them; the four together are all of them, each once."""
    return list(every[share % SHARES :: SHARES])


def share_of_the_commit() -> int:
    """From 0 to 3."""
    return number_of_the_commit() % SHARES


def number_of_the_commit(repository: Path = Path(__file__).parent) -> int:
    """One more than that of its first parent, where the history is known; or the one that was chosen by hand."""
    if chosen := os.environ.get(CHOSEN) or os.environ.get(HANDED_DOWN):
        return int(chosen)
    if _git(repository, "rev-parse", "--is-shallow-repository") == "false":
        return int(_git(repository, "rev-list", "--count", "--first-parent", "HEAD") or "0")
    return seed_of_the_commit(repository)


def seed_of_the_commit(repository: Path = Path(__file__).parent) -> int:
    """A number from the hash of its files, the same wherever they are committed; without a repository 0."""
    return int(_git(repository, "rev-parse", "HEAD^{tree}")[:7] or "0", 16)


def _git(repository: Path, *arguments: str) -> str:
    """What git answers; nothing if it fails or is not there."""
    # The checkout may belong to another user, as in a container that mounts it: it is only read.
    command = ["git", "-c", "safe.directory=*", *arguments]
    try:
        asked = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
