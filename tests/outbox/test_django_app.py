"""The Django app makes the table with a project's own migrations."""

from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from hookline.outbox import publish
from outbox.applications import Django, django_on_postgres, django_on_sqlite
from outbox.database import ORDERS, Postgres, Sqlite
from outbox.test_table import ON_POSTGRES, ON_SQLITE, columns_on_postgres, columns_on_sqlite

APP = "hookline_outbox"


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with override_settings(INSTALLED_APPS=["hookline.outbox.django"]):
        yield


@pytest.fixture(params=["postgres", "sqlite"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Django, Postgres | Sqlite]]:
    """A project whose database has nothing in it."""
    if request.param == "postgres":
        database: Postgres | Sqlite = Postgres(request.getfixturevalue("bare_url"))
        made = django_on_postgres(request.getfixturevalue("bare_url"))
    else:
        database = Sqlite(tmp_path / "application.db")
        made = django_on_sqlite(tmp_path / "application.db")
    with closing(made.connection):
        yield made, database


def migrate(made: Django, *target: str, **options: Any) -> str:
    said = StringIO()
    call_command("migrate", APP, *target, database=made.alias, stdout=said, verbosity=1, **options)
    return said.getvalue()


def test_migrate_makes_the_table(project):
    made, database = project
    assert "hookline_outbox.0001_outbox... OK" in migrate(made)
    columns = columns_on_postgres(database) if isinstance(database, Postgres) else columns_on_sqlite(database)
    assert columns == (ON_POSTGRES if isinstance(database, Postgres) else ON_SQLITE)
    database.run(ORDERS)
    with transaction.atomic(using=made.alias):
        id = publish(made.connection, "order.paid", {"id": 42})
    assert [each.id for each in database.kept()] == [id]


def test_sqlmigrate_prints_the_statements(project):
    made, _ = project
    said = StringIO()
    call_command("sqlmigrate", APP, "0001", database=made.alias, stdout=said)
    assert "CREATE TABLE IF NOT EXISTS hookline" in said.getvalue()


def test_going_back_leaves_what_is_still_to_be_sent(project):
    made, database = project
    migrate(made)
    with transaction.atomic(using=made.alias):
        publish(made.connection, "order.paid", {"id": 42})
    migrate(made, "zero")
    assert len(database.kept()) == 1
    migrate(made)
    assert len(database.kept()) == 1


def test_there_is_nothing_to_make_migrations_of(project):
    said = StringIO()
    call_command("makemigrations", "--check", "--dry-run", stdout=said)
    assert "No changes detected" in said.getvalue()


class Elsewhere:
    def allow_migrate(self, alias: str, app_label: str, **_: Any) -> bool:
        return app_label != APP


def test_a_router_keeps_it_out_of_a_database(project):
    made, database = project
    with override_settings(DATABASE_ROUTERS=[Elsewhere()]):
        migrate(made)
    if isinstance(database, Postgres):
        assert columns_on_postgres(database) == []
    else:
        assert columns_on_sqlite(database) == []
