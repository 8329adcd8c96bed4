"""Commands that manage endpoints."""

from math import isfinite
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from hookline.cli.choices import CIRCUITS, ORDERINGS, SIGNATURES, STYLES
from hookline.cli.commands.recover import recover
from hookline.cli.confirm import must_agree
from hookline.cli.exits import FAILED, USAGE, CommandError, Errors
from hookline.cli.options import (
    connect,
    dry_run_option,
    json_option,
    json_value,
    limit_option,
    read_account,
    read_span,
    read_type,
    url_option,
    yes_option,
)
from hookline.cli.output import although, print_fields, print_json, printable, say
from hookline.cli.printing.columns import endpoint_columns
from hookline.cli.printing.short_ids import whole_id
from hookline.cli.printing.table import print_list
from hookline.cli.printing.times import Times

if TYPE_CHECKING:
    from hookline.cli.client import Client


@click.group()
def endpoints() -> None:
    """Manage endpoints: the URLs that receive events."""


endpoints.add_command(recover)


@endpoints.command("list")
@click.option("--account", callback=read_account, help="Only endpoints of this account.")
@click.option("--enabled/--disabled", default=None, help="Only enabled, or only disabled endpoints.")
@click.option("--circuit", type=click.Choice(CIRCUITS), help="Only endpoints whose circuit is in this state.")
@click.option(
    "--slow/--not-slow", default=None, help="Only endpoints that respond slowly, or only the others."
)
@click.option(
    "--type", "event_type", callback=read_type, help="Only endpoints that receive events of this type."
)
@limit_option
@url_option
@json_option
def list_endpoints(limit: int, url: str | None, as_json: bool, **filter: Any) -> None:
    """List endpoints, newest first."""
    with Errors():
        found = connect(url).pages("/v1/endpoints", limit=limit, **filter)
        print_list(found, endpoint_columns, as_json=as_json)


def _fields(command: Any) -> Any:
    for option in (
        click.option(
            "--field",
            "fields",
            multiple=True,
            metavar="NAME=JSON",
            help="Set any endpoint field of the API; can be repeated.",
        ),
        click.option(
            "--retry",
            metavar="PRESET|JSON",
            help="A preset (brisk), a list of waits in seconds ([0, 5, 60]), or a retry policy as JSON.",
        ),
        click.option("--rate", type=float, metavar="N", help="Maximum number of requests per second."),
        click.option("--signing", type=click.Choice(STYLES), help="Signature style of its requests."),
        click.option(
            "--ordering",
            type=click.Choice(ORDERINGS),
            help="strict: send each event only after the previous one has ended.",
        ),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="NAME:VALUE",
            help="Header to send with each request; can be repeated.",
        ),
        click.option(
            "--client-certificate",
            type=click.File("rb"),
            metavar="FILE",
            help="Certificate and private key (PEM) to show over TLS; - reads standard input.",
        ),
        click.option("--description", help="Text that describes the endpoint."),
        click.option(
            "--event",
            "events",
            multiple=True,
            metavar="PATTERN",
            help="Event type pattern, such as 'order.*' or '*'; can be repeated.",
        ),
    ):
        command = option(command)
    return command


@endpoints.command()
@click.argument("endpoint_url", metavar="URL")
@click.option("--account", callback=read_account, help="Account of the endpoint.")
@_fields
@url_option
@json_option
def create(endpoint_url: str, account: str | None, url: str | None, as_json: bool, **options: Any) -> None:
    """Create an endpoint and print its secret."""
    with Errors():
        said = {"url": endpoint_url, **({} if account is None else {"account": account}), **_said(**options)}
        made = connect(url).post("/v1/endpoints", said)
        with although(f"{made['id']} is created", step="`hookline endpoints secret` prints its secret"):
            print_fields(made, as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@click.option("--to", "endpoint_url", metavar="URL", help="The new URL.")
@_fields
@url_option
@json_option
def update(
    endpoint_id: str, endpoint_url: str | None, url: str | None, as_json: bool, **options: Any
) -> None:
    """Update an endpoint; fields without an option stay as they are."""
    with Errors():
        said = {**({} if endpoint_url is None else {"url": endpoint_url}), **_said(**options)}
        if not said:
            raise CommandError("name a field to change, such as --retry or --field timeout_ms=5000.", USAGE)
        client = connect(url)
        print_fields(client.patch(_path(client, endpoint_id), said), as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@url_option
@json_option
def show(endpoint_id: str, url: str | None, as_json: bool) -> None:
    """Show an endpoint."""
    with Errors():
        client = connect(url)
        print_fields(client.get(_path(client, endpoint_id)), as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@dry_run_option
@yes_option
@url_option
@json_option
def delete(endpoint_id: str, dry_run: bool, yes: bool, url: str | None, as_json: bool) -> None:
    """Delete an endpoint and cancel its pending deliveries."""
    with Errors():
        client = connect(url)
        path = _path(client, endpoint_id)
        id = path.rpartition("/")[2]
        if dry_run or not yes:
            endpoint = client.get(path)
            named = f"{endpoint['id']} ({printable(endpoint['url'])})"
            if dry_run:
                text = f"{named} would be deleted, and its pending deliveries cancelled."
                say(text, {"id": endpoint["id"], "deleted": False}, as_json=as_json)
                return
            must_agree(f"Delete {named} and cancel its pending deliveries?", to="delete")
        client.delete(path)
        text = f"{id} is deleted, and its pending deliveries are cancelled."
        say(text, {"id": id, "deleted": True}, as_json=as_json)


def _verb(name: str, path: str, help: str) -> None:
    @endpoints.command(name, help=help)
    @click.argument("endpoint_id")
    @url_option
    @json_option
    def change(endpoint_id: str, url: str | None, as_json: bool) -> None:
        with Errors():
            client = connect(url)
            endpoint = client.post(f"{_path(client, endpoint_id)}/{path}")
            state = "enabled" if endpoint["enabled"] else "disabled"
            paused = ", paused" if endpoint["paused"] else ""
            circuit = _circuit(endpoint["circuit_state"])
            say(f"{endpoint['id']} is {state}{paused}, circuit {circuit}.", endpoint, as_json=as_json)


def _circuit(found: dict[str, Any]) -> str:
    state = str(found["state"]).replace("_", " ")
    probe = found["next_probe_at"]
    return state if probe is None else f"{state} (next probe {Times().show(probe)})"


_verb("pause", "pause", "Pause an endpoint: new and pending deliveries wait until it is resumed.")
_verb("resume", "resume", "Resume a paused endpoint.")
_verb("enable", "enable", "Enable an endpoint and send its waiting deliveries.")
_verb("disable", "disable", "Disable an endpoint: it gets no new events, and pending deliveries wait.")
_verb("reset-circuit", "circuit/reset", "Close an endpoint's circuit, so that sending resumes now.")


@endpoints.command()
@click.argument("endpoint_id")
@url_option
@json_option
def secret(endpoint_id: str, url: str | None, as_json: bool) -> None:
    """Print an endpoint's secret."""
    with Errors():
        client = connect(url)
        _show_secret(client.get(f"{_path(client, endpoint_id)}/secret"), as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@click.option(
    "--overlap",
    callback=read_span,
    metavar="DURATION",
    help="How long the old secret also signs, such as 7d.  [default: 1d]",
)
@click.option(
    "--signature",
    type=click.Choice(SIGNATURES),
    help="v1: shared secret; v1a: key pair.  [default: unchanged]",
)
@yes_option
@url_option
@json_option
def rotate(
    endpoint_id: str, overlap: float | None, signature: str | None, yes: bool, url: str | None, as_json: bool
) -> None:
    """Rotate an endpoint's secret and print the new one. Both secrets sign during the overlap."""
    with Errors():
        if overlap == 0 and not yes:
            must_agree(
                "Without an overlap receivers refuse all requests until they have the new secret. Rotate?",
                to="rotate",
            )
        said = {"overlap_s": None if overlap is None else round(overlap), "signature": signature}
        body = {name: value for name, value in said.items() if value is not None}
        client = connect(url)
        changed = client.post(f"{_path(client, endpoint_id)}/secret/rotate", body)
        with although("the secret is rotated", step="`hookline endpoints secret` prints the new one"):
            _show_secret(changed, as_json=as_json)


def _show_secret(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    click.echo(found["secret"])
    if found["public_key"] is not None:
        click.echo(f"Receivers need only the public key: {found['public_key']}", err=True)
    if found["old"] is not None:
        click.echo(f"The old secret also signs until {found['old']['valid_until']}.", err=True)


@endpoints.command()
@click.argument("endpoint_id")
@click.option("--no-wait", is_flag=True, help="Do not wait for the response.")
@url_option
@json_option
def test(endpoint_id: str, no_wait: bool, url: str | None, as_json: bool) -> None:
    """Send a test event and print the response; exit with 1 if it was not accepted."""
    with Errors():
        client = connect(url)
        sent = client.post(f"{_path(client, endpoint_id)}/test", {})
        if no_wait:
            say(f"{sent['id']} is created.", sent, as_json=as_json)
            return
        from hookline.cli.first_answer import answered, why_not_sent

        delivery, attempt = answered(client, sent["id"])
        if as_json:
            print_json({**delivery, "attempt_log": [attempt] if attempt else []})
        if attempt is None:
            raise CommandError(f"{sent['id']} was not sent yet: {why_not_sent(delivery)}.", FAILED)
        error = attempt["error"] or {}
        answer = attempt["status"] or printable(f"{error.get('kind')} {error.get('detail') or ''}".strip())
        if error:
            raise CommandError(f"{sent['id']} was not accepted: {answer}.", FAILED)
        if not as_json:
            click.echo(f"{sent['id']} was accepted: {answer} in {attempt['duration_ms']:,.0f} ms.")


def _said(
    *,
    events: tuple[str, ...],
    description: str | None,
    client_certificate: BinaryIO | None,
    headers: tuple[str, ...],
    ordering: str | None,
    signing: str | None,
    rate: float | None,
    retry: str | None,
    fields: tuple[str, ...],
) -> dict[str, Any]:
    said: dict[str, Any] = {
        "events": list(events) or None,
        "description": description,
        "client_certificate": None if client_certificate is None else _pem(client_certificate),
        "headers": _headers(headers) or None,
        "ordering": ordering,
        "signing": signing,
        "rate_limit": None if rate is None else {"per_second": _finite(rate)},
        "retry": None if retry is None else _retry(retry),
    }
    said = {name: value for name, value in said.items() if value is not None}
    for each in fields:
        name, value = _split(each, "=", "--field")
        said[name] = json_value(value, option="--field")
    return said


def _pem(file: BinaryIO) -> str:
    from hookline.crypto.client_certificate import MAX_BYTES

    try:
        return file.read(2 * MAX_BYTES).decode("ascii")  # what is too much, the server refuses
    except UnicodeDecodeError:
        raise CommandError("--client-certificate: the file is not in PEM form.", USAGE) from None


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, value = _split(each, ":", "--header")
        if name.lower() in map(str.lower, found):
            raise CommandError(f"--header: {name[:100]!r} is given twice.", USAGE)
        found[name] = value
    return found


def _finite(rate: float) -> float:
    if not isfinite(rate):
        raise CommandError(f"--rate: {rate} is not a number of requests.", USAGE)
    return rate


def _retry(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return {"preset": _preset(text)}
    policy = json_value(text, option="--retry")
    return {"schedule": policy} if isinstance(policy, list) else policy


def _preset(name: str) -> str:
    from hookline.rules.retry import PRESETS
    from hookline.validate.names import did_you_mean

    if name not in PRESETS:
        known = ", ".join(PRESETS)
        near = did_you_mean(name, PRESETS)
        raise CommandError(f"--retry: {name[:100]!r} is neither JSON nor one of {known}.{near}", USAGE)
    return name


def _split(text: str, mark: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name:
        raise CommandError(f"{option}: {text[:100]!r} has no {mark!r}.", USAGE)
    return name.strip(), value.strip()


def _path(client: "Client", endpoint_id: str) -> str:
    return f"/v1/endpoints/{whole_id(client, 'endpoint', endpoint_id)}"
