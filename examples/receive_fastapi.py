"""Receives webhooks in a FastAPI application and processes each event once.

    SECRET=whsec_… uvicorn --app-dir examples receive_fastapi:app --port 9000

The endpoint is then http://127.0.0.1:9000/hooks. With Starlette only the decorator differs.
"""

import json
import os
import sqlite3
from contextlib import closing

from fastapi import FastAPI, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from hookline.receiver import ProcessOnce, VerificationError, verify

SECRET = os.environ["SECRET"]
DATABASE = os.environ.get("DATABASE", "orders.db")

once = ProcessOnce()
app = FastAPI()

with closing(sqlite3.connect(DATABASE)) as connection, connection:
    once.setup(connection)
    connection.execute("CREATE TABLE IF NOT EXISTS paid (order_id INTEGER NOT NULL)")


@app.post("/hooks")
async def receive(request: Request) -> dict[str, bool]:
    body = await request.body()  # the raw bytes: the signature covers these
    try:
        event = verify(SECRET, request.headers, body, style="standard")
    except VerificationError as error:
        raise HTTPException(401, error.reason) from None
    return {"new": await run_in_threadpool(process, event.id, event.body)}


def process(event_id: str, body: bytes) -> bool:
    """Write the mark and the effect in one transaction: both are kept, or neither. A repeat gets 200 too."""
    order = json.loads(body)
    with closing(sqlite3.connect(DATABASE)) as connection, connection:
        if not once.mark(connection, event_id):
            return False
        connection.execute("INSERT INTO paid (order_id) VALUES (?)", (order["id"],))
        return True
