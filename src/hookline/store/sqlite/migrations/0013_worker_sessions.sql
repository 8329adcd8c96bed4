-- Nothing: only PostgreSQL has sessions that show whether a process is there. Migrations are counted alike on both.
-- serves: 0008

SELECT 1;
