-- An account's events, for lists of them. Where accounts are not in use every event is of the default one: then this
-- index stays empty and publishing does not pay for it.
CREATE INDEX events_account ON events (account, id) WHERE account <> 'default';
