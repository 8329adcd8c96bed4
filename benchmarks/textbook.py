"""The baseline: the webhook worker that everybody writes first.

It has a table of webhooks, and workers that take fifty due rows with SKIP LOCKED, post them one after the
other and commit, and then sleep half a second. Three commands, each a process of its own: `create` the table,
`insert` events at a pace (the load generator's part, with the same options and the same summary), `work`.
"""

import argparse
import hashlib
import hmac
import random
import sys
import time
from array import array
from collections.abc import Iterator
from itertools import count

import msgspec
import psycopg
import requests

import loadgen
from payload import endpoint_of, event_type, payload_of

BATCH = 50
MAX_ATTEMPTS = 5
EMPTY_PAUSE = 0.01  # without the published sleep, an empty queue must not become a busy loop
BACKLOG = 600  # what the closed pace keeps waiting: four batches for each of three workers
INSERT_TICK = 0.01

CREATE = """
CREATE TABLE webhooks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url text NOT NULL,
    event_type text NOT NULL,
    payload text NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    attempts int NOT NULL DEFAULT 0,
    last_error text,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz
);
CREATE INDEX webhooks_due ON webhooks (next_attempt_at) WHERE status = 'pending';
"""
INSERT = "INSERT INTO webhooks (url, event_type, payload) VALUES (%s, %s, %s)"
COUNT_PENDING = "SELECT count(*) FROM webhooks WHERE status = 'pending'"
TAKE = """
SELECT id, url, event_type, payload, attempts FROM webhooks
WHERE status = 'pending' AND next_attempt_at <= now()
ORDER BY next_attempt_at LIMIT %s FOR UPDATE SKIP LOCKED
"""
DELIVERED = """
UPDATE webhooks SET status = 'delivered', attempts = attempts + 1, delivered_at = now() WHERE id = %s
"""
FAILED = """
UPDATE webhooks SET status = %s, attempts = attempts + 1, last_error = %s,
    next_attempt_at = now() + make_interval(secs => %s)
WHERE id = %s
"""


def work(database: str, *, secret: str, pause: float) -> None:
    """Deliver until killed."""
    with psycopg.connect(database, autocommit=True) as connection:
        while True:
            taken = deliver_batch(connection, secret)
            if pause:
                time.sleep(pause)
            elif not taken:
                time.sleep(EMPTY_PAUSE)


def deliver_batch(connection: psycopg.Connection[tuple[object, ...]], secret: str) -> int:
    """One transaction: take a batch, post each, record the result."""
    with connection.transaction():
        rows = connection.execute(TAKE, (BATCH,)).fetchall()
        for key, url, kind, payload, attempts in rows:
            assert isinstance(payload, str)
            assert isinstance(attempts, int)
            error = post(str(url), str(kind), payload, secret)
            if error is None:
                connection.execute(DELIVERED, (key,))
            else:
                status = "failed" if attempts + 1 >= MAX_ATTEMPTS else "pending"
                connection.execute(FAILED, (status, error, 2**attempts, key))
    return len(rows)


def post(url: str, kind: str, payload: str, secret: str) -> str | None:
    """Send it; returns the error, or None."""
    signature = hmac.new(secret.encode(), payload.encode(), hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Webhook-Event": kind,
        "X-Webhook-Signature": f"sha256={signature}",
    }
    try:
        answer = requests.post(url, data=payload, headers=headers, timeout=10)
    except requests.RequestException as error:
        return str(error)
    return None if answer.ok else f"HTTP {answer.status_code}"


def insert(options: argparse.Namespace) -> None:
    """Publish, the textbook's way: insert rows at the given pace."""
    accepted_at = array("q")
    with psycopg.connect(options.database, autocommit=True) as connection:
        time.sleep(max(0, options.start - time.monotonic_ns()) / 1e9)
        schedule = _arrivals(options)
        due_at = next(schedule)
        while (now := time.monotonic_ns()) < options.stop:
            if options.pace == "closed":
                row = connection.execute(COUNT_PENDING).fetchone()
                times = [now] * (BACKLOG - int(row[0] if row else 0))
            else:
                times = []
                while due_at <= now:
                    times.append(due_at)
                    due_at = next(schedule)
            if times:
                _insert(connection, options.port, len(accepted_at), times)
                accepted_at.extend([time.monotonic_ns()] * len(times))
            time.sleep(INSERT_TICK)
    with options.file.open("wb") as out:
        accepted_at.tofile(out)
    summary = loadgen.Summary(
        sent=len(accepted_at),
        accepted=len(accepted_at),
        refused=0,
        unanswered=0,
        lost=0,
        statuses={},
        cpu=time.process_time(),
    )
    print(msgspec.json.encode(summary).decode(), flush=True)


def _arrivals(options: argparse.Namespace) -> Iterator[int]:
    """When events fall due in an open loop: at random (Poisson), as the load generator's do."""
    chance, due_at = random.Random(1), float(options.start)
    while True:
        yield int(due_at)
        due_at += chance.expovariate(options.rate) * 1e9 if options.rate else 1e9


def _insert(
    connection: psycopg.Connection[tuple[object, ...]], port: int, first: int, times: list[int]
) -> None:
    rows = [
        (
            f"http://127.0.0.1:{port}/{endpoint_of(seq)}",
            event_type(endpoint_of(seq)),
            payload_of(seq, at).decode(),
        )
        for seq, at in zip(count(first), times, strict=False)
    ]
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)


def main(arguments: list[str]) -> None:
    command, rest = arguments[0], arguments[1:]
    if command == "insert":
        parser = loadgen.options_parser()
        parser.add_argument("--database", required=True)
        insert(parser.parse_args(rest))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    if command == "create":
        with psycopg.connect(parser.parse_args(rest).database) as connection:
            connection.execute(CREATE)
    elif command == "work":
        parser.add_argument("--secret", required=True)
        parser.add_argument("--pause", type=float, default=0.5)
        options = parser.parse_args(rest)
        work(options.database, secret=options.secret, pause=options.pause)
    else:
        parser.error(f"unknown command {command!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
