"""Runs the Django shop, which is killed between the commit of an order and the next line."""

import os
import signal
import sys
from typing import Any

from django.core.management import execute_from_command_line
from django.db import transaction
from django.db.models.signals import post_save


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def ordered(**_: Any) -> None:
    transaction.on_commit(die)


sys.path.insert(0, os.getcwd())  # the shop's folder
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
post_save.connect(ordered, sender="orders.Order")
execute_from_command_line(["manage.py", "runserver", "--noreload", "0"])
