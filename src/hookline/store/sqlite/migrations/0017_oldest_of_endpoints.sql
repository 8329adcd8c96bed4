-- How old the oldest delivery of each endpoint is, so that an account's health is read and not searched for.
-- serves: 0008

ALTER TABLE endpoint_counts ADD COLUMN oldest_pending REAL;
ALTER TABLE endpoint_counts ADD COLUMN oldest_due REAL;
