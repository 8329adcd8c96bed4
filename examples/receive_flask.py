"""Receives webhooks in a Flask application and processes each event once.

    SECRET=whsec_… flask --app examples/receive_flask.py run --port 9000

The endpoint is then http://127.0.0.1:9000/hooks.
"""

import json
import os
import sqlite3
from contextlib import closing

from flask import Flask, request

from hookline.receiver import ProcessOnce, VerificationError, verify

SECRET = os.environ["SECRET"]
DATABASE = os.environ.get("DATABASE", "orders.db")

once = ProcessOnce()
app = Flask(__name__)

with closing(sqlite3.connect(DATABASE)) as connection, connection:
    once.setup(connection)
    connection.execute("CREATE TABLE IF NOT EXISTS paid (order_id INTEGER NOT NULL)")


@app.post("/hooks")
def receive() -> tuple[dict[str, object], int]:
    body = request.get_data()  # the raw bytes: the signature covers these
    try:
        event = verify(SECRET, request.headers, body, style="standard")
    except VerificationError as error:
        return {"error": error.reason}, 401
    order = json.loads(event.body)
    # The mark and the effect share one transaction: both are kept, or neither. A repeat gets 200 too.
    with closing(sqlite3.connect(DATABASE)) as connection, connection:
        is_new = once.mark(connection, event.id)
        if is_new:
            connection.execute("INSERT INTO paid (order_id) VALUES (?)", (order["id"],))
    return {"new": is_new}, 200
