-- The first page of what was pruned is there before the disk is full: to take something away then needs no new one.
-- serves: 0008

INSERT INTO pruned (account, deliveries, events) VALUES ('default', 0, 0) ON CONFLICT DO NOTHING;
