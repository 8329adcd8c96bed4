-- Until when a receiver asked that the whole lane be left alone (Retry-After): part of `hold_until`, and kept apart from it,
-- so that whoever gives up or moves what else holds the lane back does not end the rest too.
-- serves: 0008

ALTER TABLE lanes ADD COLUMN rest_until REAL NOT NULL DEFAULT -9e999;
