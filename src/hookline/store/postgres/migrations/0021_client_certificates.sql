-- Certificates with which requests prove over TLS who sends them: JSON; null: none.
-- serves: 0008

ALTER TABLE endpoints ADD COLUMN client_certificate text;
