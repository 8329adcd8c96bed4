-- What all processes of an installation share.

CREATE TABLE installation (           -- one row at most
  one INTEGER PRIMARY KEY CHECK (one = 1),
  secret BLOB NOT NULL
);
