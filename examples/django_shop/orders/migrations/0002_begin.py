"""Creates the table of processed webhooks, and puts ten lamps into the stock."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from hookline.receiver import ProcessOnce


def begin(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    ProcessOnce().setup(schema_editor.connection)
    apps.get_model("orders", "Item").objects.create(name="lamp", stock=10)


class Migration(migrations.Migration):
    dependencies = (("orders", "0001_initial"),)
    operations = (migrations.RunPython(begin),)
