"""Creates the outbox table."""

from django.db import migrations

from hookline.outbox.django.operations import CreateOutbox


class Migration(migrations.Migration):
    """Where a project begins."""

    initial = True
    operations = (CreateOutbox(),)
