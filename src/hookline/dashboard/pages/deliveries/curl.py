"""Writes a request as a curl command that can be pasted into a shell.

What is in it comes from people and receivers. None of it can end its quotes, begin another command or name a file.
"""

from collections.abc import Mapping

LONGEST_BYTES = 65_536  # a longer body does not fit into an argument everywhere
NOTE = "# The signature is that of the attempt: most receivers refuse it when it is old. Replace each *** by its value."


def curl(url: str, headers: Mapping[str, str], body: bytes, *, file_name: str) -> str:
    """The POST of a delivery. A body that is too long for it is read from the file."""
    parts = ["curl --globoff --path-as-is --request POST", f"--url {quoted(url)}"]
    for name, value in headers.items():
        # A header without a value needs a semicolon: a colon would take it away.
        line = f"{name}: {value}" if value else f"{name};"
        if not line.startswith("@"):  # curl would read a file
            parts.append(f"--header {quoted(line)}")
    lines = [NOTE]
    before = ""
    if len(body) > LONGEST_BYTES:
        lines.append("# The payload is too long for a command: download it first.")
        parts.append(f"--data-binary {quoted(f'@{file_name}')}")
    elif b"\0" in body or body.startswith(b"@"):
        before = f"printf {quoted(_octal(body))} | "
        parts.append("--data-binary @-")
    else:
        parts.append(f"--data-binary {quoted(body)}")
    return "\n".join([*lines, before + " \\\n  ".join(parts)])


def quoted(value: str | bytes) -> str:
    """The value as one word of a shell: 'as it is', or $'…' if it has characters that cannot be seen."""
    content = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not content):
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + "".join(_escaped(byte) for byte in content) + "'"


def _escaped(byte: int) -> str:
    if 32 <= byte < 127 and byte not in b"'\\!":
        return chr(byte)
    return {10: "\\n", 9: "\\t", 13: "\\r"}.get(byte) or f"\\{byte:03o}"


def _octal(content: bytes) -> str:
    """For printf, which reads \\000 where no argument can have it."""
    return "".join(f"\\{byte:03o}" for byte in content)
