-- Who changed what, when and from where (docs/audit.md).
-- serves: 0008

CREATE TABLE audit (
  id BLOB PRIMARY KEY,
  at REAL NOT NULL,
  account TEXT,                       -- whose things it is about; NULL: nobody's in particular
  action TEXT NOT NULL,
  subject_kind TEXT NOT NULL, subject TEXT NOT NULL,
  actor TEXT NOT NULL,                -- key, settings_key, portal, development, command_line or program
  actor_key BLOB, actor_name TEXT NOT NULL, actor_hint TEXT NOT NULL, actor_account TEXT,
  via TEXT NOT NULL, address TEXT, request_id TEXT,
  changes TEXT NOT NULL,              -- JSON object: the old and the new value by field, without secrets
  is_cut INTEGER NOT NULL             -- 1: some of the changes are left out
) WITHOUT ROWID;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_account ON audit (account, id);
CREATE INDEX audit_action ON audit (action, id);
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_actor ON audit (actor_key, id) WHERE actor_key IS NOT NULL;
