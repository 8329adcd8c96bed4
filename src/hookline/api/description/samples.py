"""Writes a call as a curl command.

`$HOOKLINE_URL` and `$HOOKLINE_API_KEY` stand for the server and the key, as for the command line. The viewer puts in the
server that it came from.
"""

import shlex
from typing import Any

import msgspec

from hookline.api.call import Call, CallScope

SERVER = "$HOOKLINE_URL"
KEY = "$HOOKLINE_API_KEY"


def curl(call: Call, path: str, body: Any, *, needs_key: bool) -> str:
    """The call with this path and this body; None: none."""
    method = "" if call.method == "GET" else f" -X {call.method}"
    lines = [f'curl{method} "{SERVER}{path}"']
    if needs_key and call.scope is not CallScope.OPEN:
        lines.append(f'-H "Authorization: Bearer {KEY}"')
    if body is not None:
        lines.append('-H "Content-Type: application/json"')
        lines.append(f"-d {shlex.quote(msgspec.json.encode(body).decode())}")
    return " \\\n  ".join(lines)
