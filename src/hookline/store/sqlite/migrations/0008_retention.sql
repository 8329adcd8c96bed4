-- What pruning has taken away, and whose turn it is.

CREATE TABLE pruned (                 -- so that what was accepted still adds up
  account TEXT PRIMARY KEY,
  deliveries INTEGER NOT NULL,
  events INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE prune_turn (             -- one row
  next_at REAL NOT NULL
);
INSERT INTO prune_turn (next_at) VALUES (-9e999);
