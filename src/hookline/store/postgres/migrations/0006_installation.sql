-- What all processes of an installation share.

CREATE TABLE installation (             -- one row at most
  one boolean PRIMARY KEY CHECK (one),
  secret bytea NOT NULL
);
