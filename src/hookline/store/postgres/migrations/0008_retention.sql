-- What pruning has taken away, and whose turn it is.

CREATE TABLE pruned (                   -- so that what was accepted still adds up
  deliveries bigint NOT NULL,
  events bigint NOT NULL,
  account text PRIMARY KEY
) WITH (fillfactor = 50);

CREATE TABLE prune_turn (next_at timestamptz NOT NULL) WITH (fillfactor = 10);
CREATE UNIQUE INDEX prune_turn_one ON prune_turn ((true));
INSERT INTO prune_turn (next_at) VALUES ('-infinity');

-- Rows that are pruned leave room for new ones before the tables have grown by a fifth.
ALTER TABLE events   SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
