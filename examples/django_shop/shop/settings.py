"""Configures the shop: what hookline needs, and the least that Django needs."""

import os
from pathlib import Path
from secrets import token_hex

WEBHOOK_SECRET = os.environ.get("WEBHOOK_SECRET", "")  # of the endpoint that hookline sends to

INSTALLED_APPS = ["hookline.outbox.django", "orders"]  # the first makes the outbox table

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(__file__).parent.parent / "shop.db",
        "OPTIONS": {
            # Wait for the write lock at the start of a transaction, so that none fails in its middle.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,  # seconds
            # Whoever reads, as hookline does, keeps nobody from writing.
            "init_command": "PRAGMA journal_mode = WAL",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DEBUG = True  # prints errors; not for production
SECRET_KEY = token_hex(32)
ROOT_URLCONF = "shop.urls"
TIME_ZONE = "UTC"
