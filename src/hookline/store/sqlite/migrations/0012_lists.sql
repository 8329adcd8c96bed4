-- Nothing: only PostgreSQL's driver needs a type for its batches. Migrations are counted alike on both.
-- serves: 0008

SELECT 1;
