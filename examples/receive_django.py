"""Receives webhooks in a Django application and processes each event once.

A complete project in one file:

    SECRET=whsec_… python examples/receive_django.py runserver 9000 --noreload

The endpoint is then http://127.0.0.1:9000/hooks.
"""

import json
import os
import sys
from secrets import token_hex

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hookline.receiver import ProcessOnce, VerificationError, verify

SECRET = os.environ["SECRET"]

settings.configure(
    SECRET_KEY=token_hex(32),
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ.get("DATABASE", "orders.db"),
            # Take the write lock at the start, so that a transaction that waits for another does not fail.
            "OPTIONS": {"transaction_mode": "IMMEDIATE"},
        }
    },
)
django.setup()

once = ProcessOnce()


@csrf_exempt  # a webhook has a signature instead
@require_POST
def receive(request: HttpRequest) -> JsonResponse:
    try:
        # request.body has the raw bytes: the signature covers these.
        event = verify(SECRET, request.headers, request.body, style="standard")
    except VerificationError as error:
        return JsonResponse({"error": error.reason}, status=401)
    order = json.loads(event.body)
    # The mark and the effect share one transaction: both are kept, or neither. A repeat gets 200 too.
    with transaction.atomic():
        is_new = once.mark(connection, event.id)
        if is_new:
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO paid (order_id) VALUES (%s)", [order["id"]])
    return JsonResponse({"new": is_new})


urlpatterns = [path("hooks", receive)]
application = get_wsgi_application()

with connection.cursor() as cursor:
    once.setup(connection)
    cursor.execute("CREATE TABLE IF NOT EXISTS paid (order_id INTEGER NOT NULL)")

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
