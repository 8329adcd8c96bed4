-- Why a job has failed.
-- serves: 0008

ALTER TABLE jobs ADD COLUMN reason text;
