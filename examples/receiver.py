"""Receives webhooks and checks their signatures, with only the standard library.

Run it: SECRET=whsec_… python3 examples/receiver.py [port]
"""

import base64
import contextlib
import hmac
import os
import sys
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("SECRET", "")
TOLERANCE_S = 300  # an older request may be a replayed recording


def is_genuine(headers: Message, body: bytes) -> bool:
    """Standard Webhooks: HMAC-SHA256 over id, timestamp and body, keyed with the secret's bytes."""
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key, message, "sha256")).decode()
    given = (headers["webhook-signature"] or "").split(" ")
    is_fresh = abs(time.time() - int(headers["webhook-timestamp"] or 0)) < TOLERANCE_S
    return is_fresh and any([hmac.compare_digest(expected, each) for each in given])


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        accepted = is_genuine(self.headers, body)
        # The id is the same on every retry. A receiver that must not act twice stores it.
        print(
            self.headers["webhook-event"],
            self.headers["webhook-id"],
            f"attempt {self.headers['webhook-attempt']},",
            "signature ok:" if accepted else "SIGNATURE WRONG:",
            body.decode(),
            flush=True,
        )
        self.send_response(204 if accepted else 401)
        if not accepted:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: one printed line per webhook is enough."""


if __name__ == "__main__":
    if not SECRET:
        sys.exit("Set SECRET to the endpoint's secret, whsec_…")
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000), Receiver)
    print(f"receiving on http://127.0.0.1:{server.server_port}/", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
