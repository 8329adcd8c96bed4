"""Changes the outbox table from version to version."""
