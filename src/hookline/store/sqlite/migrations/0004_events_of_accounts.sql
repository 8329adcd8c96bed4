-- Differs from postgres: the index of an account's events was there from the beginning. The numbers stay in step.
SELECT 1;
