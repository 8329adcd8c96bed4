-- Whether the session of a worker's pulse holds a lock on its id: its death shows by that.
-- serves: 0008

ALTER TABLE workers ADD COLUMN has_session boolean NOT NULL DEFAULT false;
