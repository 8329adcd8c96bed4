"""Measures how many requests a second the sender makes when it does nothing else.

No store, no lanes, no signatures. Run as `bare.py PORT REQUESTS`; it prints the rate.
"""

import asyncio
import sys
import time

import uvloop

from hookline.clock import SystemClock
from hookline.pipeline.sending import HttpSender, Request, SendResult, parse
from hookline.pipeline.sending.net import SystemNet

AT_ONCE = 100
BODY = b'{"filling":"' + b"x" * 1_000 + b'"}'
LINES = b"content-type: application/json\r\nwebhook-id: evt_bare\r\nwebhook-attempt: 1\r\n"


async def main() -> None:
    port, requests = map(int, sys.argv[1:])
    sender = HttpSender(SystemNet(), SystemClock(), gate=lambda: True, vet=lambda address: True)
    target = parse(f"http://127.0.0.1:{port}/bare")
    finished = asyncio.Event()
    to_send = to_come = requests

    def done(answer: SendResult) -> None:
        nonlocal to_come
        to_come -= 1
        if to_come == 0:
            finished.set()
        send()

    def send() -> None:
        nonlocal to_send
        if to_send:
            to_send -= 1
            sender.send(Request(target, LINES, BODY, 10.0), done)

    began = time.monotonic()
    for _ in range(AT_ONCE):
        send()
    await finished.wait()
    print(requests / (time.monotonic() - began))
    await sender.close()


if __name__ == "__main__":
    uvloop.run(main())
