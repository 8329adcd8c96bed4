-- Whom the schema serves: the lowest level of code (the number of its newest migration) that can still work with it.
-- serves: 0008

CREATE TABLE schema_serves (level INTEGER NOT NULL);   -- one row
INSERT INTO schema_serves (level) VALUES (0);
