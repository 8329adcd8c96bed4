-- Nothing: here a table has its first page from the beginning, which on PostgreSQL has to be made. Migrations are
-- counted alike on both.
-- serves: 0008

SELECT 1;
