"""Registers the outbox with Django. It has no models: rows are written by `hookline.outbox.publish`."""

from django.apps import AppConfig


class OutboxApp(AppConfig):
    """The app `hookline.outbox.django`."""

    name = "hookline.outbox.django"
    label = "hookline_outbox"
    verbose_name = "hookline outbox"
