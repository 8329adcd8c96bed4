"""Commands that sign a request or verify one by hand."""

import json
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from hookline.cli.choices import STYLES
from hookline.cli.exits import FAILED, USAGE, CommandError, Errors
from hookline.cli.options import json_option, read_past, read_span
from hookline.cli.output import print_fields, print_json, printable

if TYPE_CHECKING:
    from collections.abc import Callable


def secret_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Options for an endpoint's secrets: on the command line, or hidden from the list of processes."""
    for option in (
        click.option(
            "--secret-file",
            "secret_files",
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="File that contains the secret.",
        ),
        click.option("--secret", "secrets", multiple=True, metavar="SECRET", help="The endpoint's secret."),
    ):
        command = option(command)
    return command


def secrets_of(secrets: tuple[str, ...], secret_files: tuple[Path, ...]) -> list[str]:
    """All secrets that were given."""
    found = list(secrets)
    for file in secret_files:
        try:
            found.append(file.read_text("utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise CommandError(f"--secret-file: cannot read {file}: {why}.", USAGE) from None
    return found


def check_usable(secret: str) -> None:
    """Refuse an invalid secret: every request would be answered 401, and its sender would give up."""
    from hookline.crypto.signing import PREFIX, PUBLIC_PREFIX
    from hookline.model import Signing
    from hookline.receiver import VerificationError
    from hookline.receiver.keys import keys_for

    is_standard = secret.startswith((PREFIX, PUBLIC_PREFIX))
    try:
        keys_for(secret, Signing.STANDARD if is_standard else Signing.CLASSIC)
    except VerificationError as error:
        raise CommandError(f"--secret: {error}", USAGE) from None


@click.command()
@click.argument("body", type=click.File("rb"), default="-")
@secret_options
@click.option(
    "--style", type=click.Choice(STYLES), default="standard", show_default=True, help="Signature style."
)
@click.option("--id", "event_id", metavar="ID", help="Event id.  [default: a new id]")
@click.option("--type", "event_type", metavar="TYPE", help="Event type, for the event type header.")
@click.option(
    "--at",
    callback=read_past,
    metavar="TIME",
    help="When it was sent: a time, or how long ago.  [default: now]",
)
@json_option
def sign(
    body: IO[bytes],
    secrets: tuple[str, ...],
    secret_files: tuple[Path, ...],
    style: str,
    event_id: str | None,
    event_type: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Sign a body and print the headers.

    BODY is a file; if omitted, it is read from standard input. Its bytes are signed as they are, including a newline
    at the end.
    """
    with Errors():
        given = secrets_of(secrets, secret_files)
        if len(given) != 1:
            raise CommandError("give exactly one secret, with --secret or --secret-file.", USAGE)
        headers = _headers(given[0], body.read(), style=style, event_id=event_id, at=at)
        if event_type is not None:
            headers["webhook-event" if style == "standard" else "x-webhook-event"] = event_type
        if as_json:
            print_json(headers)
            return
        for name, value in headers.items():
            click.echo(f"{name}: {value}")


def _headers(secret: str, body: bytes, *, style: str, event_id: str | None, at: str | None) -> dict[str, str]:
    from hookline import rfc3339
    from hookline.clock import SystemClock
    from hookline.crypto.signing import (
        Ed25519,
        Mac,
        key_of,
        sign_classic,
        sign_standard,
        sign_with_key,
        signature_of,
    )
    from hookline.errors import Invalid
    from hookline.model import Signature, Signing

    now = int(SystemClock().wall() if at is None else rfc3339.read(at))
    id = _checked(event_id) if event_id is not None else _new_id()
    try:
        if style == "classic":
            signature = sign_classic(Mac(key_of(secret, Signing.CLASSIC)), body)
            return {"x-event-id": id, "x-webhook-timestamp": str(now), "x-webhook-signature": signature}
        if signature_of(secret, Signing.STANDARD) is Signature.V1A:
            signature = sign_with_key(Ed25519(secret), id, now, body)
        else:
            signature = sign_standard(Mac(key_of(secret, Signing.STANDARD)), id, now, body)
    except Invalid as error:
        raise CommandError(f"--secret: {error.detail}", USAGE) from None
    return {"webhook-id": id, "webhook-timestamp": str(now), "webhook-signature": signature}


def _checked(id: str) -> str:
    if not id or "." in id or not all("!" <= each <= "~" for each in id) or len(id) > 255:
        raise CommandError("--id: an id is 1 to 255 visible ASCII characters without a dot.", USAGE)
    return id


def _new_id() -> str:
    import secrets

    return f"msg_{secrets.token_hex(12)}"


@click.command()
@click.argument("body", type=click.File("rb"), default="-")
@secret_options
@click.option(
    "--headers",
    "file",
    type=click.File("rb"),
    metavar="FILE",
    help="File with the request's headers: lines of `name: value`, or a JSON object.",
)
@click.option(
    "--header",
    "lines",
    multiple=True,
    metavar="NAME:VALUE",
    help="One header of the request; can be repeated.",
)
@click.option("--style", type=click.Choice(STYLES), help="Accept only this signature style.")
@click.option(
    "--tolerance",
    callback=read_span,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="Maximum age of the request.",
)
@click.option(
    "--at",
    callback=read_past,
    metavar="TIME",
    help="When it was received: a time, or how long ago.  [default: now]",
)
@json_option
def verify(
    body: IO[bytes],
    secrets: tuple[str, ...],
    secret_files: tuple[Path, ...],
    file: IO[bytes] | None,
    lines: tuple[str, ...],
    style: str | None,
    tolerance: float,
    at: str | None,
    as_json: bool,
) -> None:
    """Verify the signature of a captured request.

    BODY is a file; if omitted, it is read from standard input. Exits with 0 if one of the secrets signed the request,
    and with 1 if none did.
    """
    with Errors():
        given = secrets_of(secrets, secret_files)
        if not given:
            raise CommandError("give a secret, with --secret or --secret-file.", USAGE)
        headers = (_read_headers(file.read()) if file is not None else []) + [_header(each) for each in lines]
        if not headers and file is not None:
            raise CommandError(f"--headers: {file.name} has no headers, such as `webhook-id: evt_1`.", USAGE)
        if not headers:
            raise CommandError("give the request's headers, with --headers or --header.", USAGE)
        _verify(given, headers, body.read(), style=style, tolerance=tolerance, at=at, as_json=as_json)


def _verify(
    secrets: list[str],
    headers: list[tuple[str, str]],
    body: bytes,
    *,
    style: str | None,
    tolerance: float,
    at: str | None,
    as_json: bool,
) -> None:
    from hookline import rfc3339
    from hookline.receiver import VerificationError, verify

    now = None if at is None else rfc3339.read(at)
    try:
        found = verify(secrets, headers, body, now=now, tolerance=tolerance, style=style)
    except VerificationError as error:
        if as_json:
            print_json({"verified": False, "refusal": str(error.reason), "detail": str(error)})
            sys.exit(FAILED)
        raise CommandError(f"not verified: {printable(str(error))}", FAILED) from None
    print_fields(
        {
            "verified": True,
            "style": str(found.style),
            "id": found.id,
            "timestamp": found.timestamp,
            "event_type": found.event_type,
            "attempt": found.attempt,
            "secret_number": found.secret_number,
        },
        as_json=as_json,
    )


def _read_headers(text: bytes) -> list[tuple[str, str]]:
    try:
        shown = text.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandError("--headers: the file is not text.", USAGE) from None
    if shown.lstrip().startswith("{"):
        try:
            found = json.loads(shown)
        except (ValueError, RecursionError) as error:
            raise CommandError(f"--headers: not a JSON object ({error}).", USAGE) from None
        return [(str(name), str(value)) for name, value in found.items()]
    # `curl -v` and similar tools print a request line, and a mark before each header.
    lines = [line.lstrip("<>* ").rstrip() for line in shown.splitlines()]
    return [_header(line) for line in lines if line and ":" in line.split(" ")[0]]


def _header(line: str) -> tuple[str, str]:
    name, mark, value = line.partition(":")
    if not mark or not name.strip():
        raise CommandError(f"--header: {line[:100]!r} has no ':'.", USAGE)
    return name.strip(), value.strip()
