"""The next version of hookline, as far as its migrations go: a copy of this one with one more of each kind."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import hookline
from hookline.store.migrations import read_migrations

VERSION = "9.9.0"
USER_AGENT = "hookline/9.9"
STORES = ("postgres", "sqlite")
TABLES = """-- serves: {serves:04}
ALTER TABLE deliveries ADD COLUMN later text;
CREATE TABLE later (id text PRIMARY KEY);
"""
INDEX = {
    "postgres": """-- serves: {serves:04}
-- each statement by itself
DROP INDEX CONCURRENTLY IF EXISTS deliveries_later;
CREATE INDEX CONCURRENTLY deliveries_later ON deliveries (due_at);
""",
    "sqlite": """-- serves: {serves:04}
CREATE INDEX deliveries_later ON deliveries (due_at);
""",
}
LEVEL = len(read_migrations("hookline.store.postgres.migrations"))


class NextRelease:
    """Made in `folder`; `serves_this` says whether its migrations still serve this version's code."""

    def __init__(self, folder: Path, *, serves_this: bool = True) -> None:
        serves = LEVEL if serves_this else LEVEL + 1
        package = folder / "hookline"
        shutil.copytree(Path(hookline.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
        for store in STORES:
            migrations = package / "store" / store / "migrations"
            (migrations / f"{LEVEL + 1:04}_later.sql").write_text(TABLES.format(serves=serves))
            (migrations / f"{LEVEL + 2:04}_index.sql").write_text(INDEX[store].format(serves=serves))
        version = package / "version.py"
        text = version.read_text()
        assert text.count('VERSION = "') == 1
        version.write_text(text.replace(f'VERSION = "{hookline.version.VERSION}"', f'VERSION = "{VERSION}"'))
        self.names = [f"{LEVEL + 1:04}_later", f"{LEVEL + 2:04}_index"]
        self._folder = folder

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What makes `python -m hookline` the next version."""
        paths = [str(self._folder), os.environ.get("PYTHONPATH", "")]
        return {"PYTHONPATH": os.pathsep.join(filter(None, paths)), **(extra or {})}
