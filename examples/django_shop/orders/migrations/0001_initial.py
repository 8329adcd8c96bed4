"""Creates the shop's tables."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = (
        migrations.CreateModel(
            name="Item",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("stock", models.IntegerField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("stock__gte", 0)), name="enough_in_stock")
                ],
            },
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "quantity",
                    models.PositiveIntegerField(validators=[django.core.validators.MinValueValidator(1)]),
                ),
                (
                    "item",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="orders.item"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Parcel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("order_number", models.BigIntegerField()),
                ("contents", models.CharField(max_length=60)),
            ],
        ),
    )
