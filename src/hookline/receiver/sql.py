"""The statements that keep the marks of processed events.

They run in the application's own database, in both dialects, with the same names and order. `?` stands for a value;
each driver's own placeholder replaces it.
"""

from typing import NamedTuple


class Statements(NamedTuple):
    """The statements of one dialect."""

    setup: tuple[str, ...]  # may be repeated, also by several processes at once
    mark: str  # returns a row when the mark is new
    prune: str  # returns a row for each mark it deleted


# No percent sign anywhere: drivers with `%s` placeholders would read it as one.
_NOW_SQLITE = "CAST((julianday('now') - 2440587.5) * 86400 AS INTEGER)"

SQLITE = Statements(
    setup=(
        f"""
CREATE TABLE IF NOT EXISTS hookline_processed (
  consumer TEXT NOT NULL,
  event_id TEXT NOT NULL,
  processed_at INTEGER NOT NULL DEFAULT ({_NOW_SQLITE}),
  PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID
""",
        "CREATE INDEX IF NOT EXISTS hookline_processed_at ON hookline_processed (processed_at)",
    ),
    mark="""
INSERT INTO hookline_processed (consumer, event_id) VALUES (?, ?)
ON CONFLICT DO NOTHING RETURNING 1
""",
    prune=f"""
DELETE FROM hookline_processed WHERE (consumer, event_id) IN (
  SELECT consumer, event_id FROM hookline_processed
  WHERE processed_at < {_NOW_SQLITE} - ? ORDER BY processed_at LIMIT ?)
RETURNING 1
""",
)

POSTGRES = Statements(
    # One statement, and a lock that ends with it: CREATE … IF NOT EXISTS alone fails when two start together.
    setup=(
        """
DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('hookline_processed'));
  CREATE TABLE IF NOT EXISTS hookline_processed (
    consumer text NOT NULL,
    event_id text NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, event_id)
  );
  CREATE INDEX IF NOT EXISTS hookline_processed_at ON hookline_processed (processed_at);
END $$
""",
    ),
    # Waits for a transaction that holds the same mark: whether that one commits decides what this one finds.
    mark="""
INSERT INTO hookline_processed (consumer, event_id) VALUES (?, ?)
ON CONFLICT DO NOTHING RETURNING 1
""",
    prune="""
DELETE FROM hookline_processed WHERE (consumer, event_id) IN (
  SELECT consumer, event_id FROM hookline_processed
  WHERE processed_at < now() - make_interval(secs => ?) ORDER BY processed_at LIMIT ?)
RETURNING 1
""",
)
