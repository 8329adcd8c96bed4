-- Differs from postgres, where a page has to be made: here the table has one. So that both count migrations alike.
-- serves: 0008

INSERT INTO pruned (account, deliveries, events) VALUES ('default', 0, 0) ON CONFLICT DO NOTHING;
