-- Who changed what, when and from where (docs/audit.md).
-- serves: 0008

CREATE TABLE audit (
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL,
  account text,                         -- whose things it is about; null: nobody's in particular
  action text NOT NULL,
  subject_kind text NOT NULL, subject text NOT NULL,
  actor text NOT NULL,                  -- key, settings_key, portal, development, command_line or program
  actor_key uuid, actor_name text NOT NULL, actor_hint text NOT NULL, actor_account text,
  via text NOT NULL, address text, request_id text,
  changes text NOT NULL,                -- JSON object: the old and the new value by field, without secrets
  is_cut boolean NOT NULL               -- true: some of the changes are left out
);
CREATE INDEX audit_at      ON audit (at);
CREATE INDEX audit_account ON audit (account, id);
CREATE INDEX audit_action  ON audit (action, id);
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_actor   ON audit (actor_key, id) WHERE actor_key IS NOT NULL;
