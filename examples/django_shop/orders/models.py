"""Defines what the shop stores."""

from django.core.validators import MinValueValidator
from django.db import models


class Item(models.Model):
    """Something to sell."""

    name = models.CharField(primary_key=True, max_length=40)
    stock = models.IntegerField()

    class Meta:
        constraints = (models.CheckConstraint(condition=models.Q(stock__gte=0), name="enough_in_stock"),)


class Order(models.Model):
    """What a customer ordered."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT)
    quantity = models.PositiveIntegerField(validators=[MinValueValidator(1)])


class Parcel(models.Model):
    """What the warehouse packs: one for each order."""

    order_number = models.BigIntegerField()
    contents = models.CharField(max_length=60)
