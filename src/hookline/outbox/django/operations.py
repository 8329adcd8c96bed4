"""Makes the outbox table in a Django migration."""

from typing import Any

from django.db.migrations.operations.base import Operation

from hookline.outbox.table import ddl_statements


class CreateOutbox(Operation):
    """Make the table on PostgreSQL and SQLite; nothing elsewhere, where hookline does not look.

    Going back leaves the table: its rows are events that are still to be sent, and the database may be hookline's own.
    """

    reduces_to_sql = True
    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: there is no model."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        connection = schema_editor.connection
        if connection.vendor in ("postgresql", "sqlite") and self._is_allowed(app_label, connection.alias):
            for statement in ddl_statements(connection.vendor):
                schema_editor.execute(statement, params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Nothing."""

    def describe(self) -> str:
        return "Create hookline's outbox table"

    def _is_allowed(self, app_label: str, alias: str) -> bool:
        from django.db import router

        return bool(router.allow_migrate(alias, app_label))
