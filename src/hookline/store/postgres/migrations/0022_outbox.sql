-- Events that applications publish in their own transactions, and what was refused of them (docs/outbox.md).
-- serves: 0008

-- An application's own migrations may have been first, as another user: then the table is left as it is.
DO $$
BEGIN
  IF to_regclass('hookline.outbox') IS NULL THEN
    CREATE TABLE IF NOT EXISTS hookline.outbox (
      seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      id uuid NOT NULL CHECK (right(id::text, 5) = '00000')  -- the default is for an INSERT by hand, in any language
        DEFAULT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
          || substr(replace(gen_random_uuid()::text, '-', ''), 14, 14) || '00000')::uuid,
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      deliver_at timestamptz,
      account text NOT NULL DEFAULT 'default',
      type text NOT NULL,
      idempotency_key text,
      hops smallint NOT NULL DEFAULT 0,
      payload bytea NOT NULL
    );
    ALTER TABLE hookline.outbox ALTER payload SET STORAGE EXTERNAL;
    CREATE INDEX IF NOT EXISTS outbox_accounts ON hookline.outbox (account, seq);
  END IF;
END $$;

CREATE TABLE outbox_refused (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- nothing keeps an application from using one id twice
  source text NOT NULL, seq bigint NOT NULL, id uuid NOT NULL,
  at timestamptz NOT NULL, deliver_at timestamptz,
  account text NOT NULL, type text NOT NULL, idempotency_key text, hops smallint NOT NULL, payload bytea NOT NULL,
  refused_at timestamptz NOT NULL, code text NOT NULL, detail text NOT NULL,
  UNIQUE (source, seq, id)
);
ALTER TABLE outbox_refused ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE INDEX outbox_refused_account ON outbox_refused (account, n);
CREATE INDEX outbox_refused_id      ON outbox_refused (id);

CREATE TABLE outbox_sources (
  name text PRIMARY KEY,
  clear_at timestamptz,                 -- what was accepted before left its outbox; null: nothing was ever accepted
  looked_at timestamptz,                -- the last look that succeeded
  waiting bigint NOT NULL DEFAULT 0,    -- rows, as of the last note
  oldest_at timestamptz,                -- when the oldest of them was published
  trouble text                          -- why it cannot be read; null: it can
);
