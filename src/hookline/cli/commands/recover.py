"""The command that brings an endpoint back: test it, close its circuit, replay what died meanwhile."""

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from hookline.cli.exits import FAILED, CommandError, Errors
from hookline.cli.first_answer import why_not_sent
from hookline.cli.options import connect, json_option, url_option, yes_option
from hookline.cli.output import counted, print_json, printable
from hookline.cli.printing.columns import short_url
from hookline.cli.printing.short_ids import whole_id

if TYPE_CHECKING:
    from hookline.cli.client import Client

_LOOK_EVERY = 0.2  # seconds
_LOOKS = 350  # a receiver has up to a minute to answer


@click.command()
@click.argument("endpoint_id")
@click.option(
    "--replay/--no-replay",
    default=None,
    help="Replay what died since it last accepted something, or do not.  [default: ask]",
)
@yes_option
@url_option
@json_option
def recover(endpoint_id: str, replay: bool | None, yes: bool, url: str | None, as_json: bool) -> None:
    """Test an endpoint also behind an open circuit; if it accepts, send again and replay what died meanwhile."""
    with Errors():
        client = connect(url)
        path = f"/v1/endpoints/{whole_id(client, 'endpoint', endpoint_id)}"
        before = client.get(path)
        attempt = _tested(client, path, before)
        named = printable(short_url(before["url"]))
        if not as_json:
            click.echo(f"{named} accepts again: {attempt['status']} in {attempt['duration_ms']:,.0f} ms.")
            click.echo("Its circuit is closed, and what waits is sent.")
        since = before["circuit_state"]["last_success_at"] or before["created_at"]
        job = _replayed(
            client,
            {"endpoint_id": before["id"], "since": since},
            replay=yes or None if replay is None else replay,
        )
        if as_json:
            print_json({"endpoint_id": before["id"], "attempt": attempt, "since": since, "replay": job})
        if job["failed"]:
            raise CommandError(f"{job['failed']:,} skipped: not dead letters, or no longer.", FAILED)


def _tested(client: "Client", path: str, before: dict[str, Any]) -> dict[str, Any]:
    """The accepted attempt of a test event; raises if the endpoint does not accept it."""
    sent = client.post(f"{path}/test", {})["id"]
    try:
        return _accepted(client, path, before, sent)
    except CommandError:
        _taken_back(client, sent)
        raise


def _accepted(client: "Client", path: str, before: dict[str, Any], sent: str) -> dict[str, Any]:
    is_open = before["circuit_state"]["state"] != "closed"
    if is_open:
        client.post(f"{path}/circuit/reset")  # or the test event waits for the next probe
    for _ in range(_LOOKS):
        attempts = client.get(f"/v1/deliveries/{sent}/attempts")["data"]
        if attempts:
            break
        circuit = client.get(path)["circuit_state"]
        if circuit["opened_at"] not in (None, before["circuit_state"]["opened_at"]):
            raise CommandError(
                "it does not accept yet: what was waiting was sent first and failed, "
                f"and its circuit opened again ({circuit['reason']}).",
                FAILED,
            )
        threading.Event().wait(_LOOK_EVERY)
    else:
        raise CommandError(f"{sent} was not sent yet: {why_not_sent(client.get(f'/v1/deliveries/{sent}'))}.")
    first: dict[str, Any] = attempts[-1]
    if (error := first["error"]) is not None:
        answer = first["status"] or printable(f"{error['kind']} {error['detail'] or ''}".strip())
        more = " Its circuit opens again by itself if more fails." if is_open else ""
        raise CommandError(f"it does not accept yet: {answer}.{more}", FAILED)
    return first


def _taken_back(client: "Client", sent: str) -> None:
    """Leave no test event behind that waits, or died: it would be counted, told of and replayed."""
    for path in (f"/v1/deliveries/{sent}/cancel", f"/v1/dead-letters/{sent}/discard"):
        with contextlib.suppress(CommandError):  # it is in another state
            client.post(path)
            return


def _replayed(client: "Client", chosen: dict[str, Any], *, replay: bool | None) -> dict[str, Any]:
    """The replay of what died, once it is done; a dry run if it was not wanted."""
    tried: dict[str, Any] = client.post("/v1/replays", {"filter": chosen, "dry_run": True})
    letters = counted(tried["matched"], "dead letter", "dead letters")
    if not tried["matched"]:
        click.echo("Nothing died since it last accepted something.", err=True)
        return tried
    if replay is None and sys.stdin.isatty():
        replay = click.confirm(f"Replay {letters} that died since it last accepted something?", err=True)
    if not replay:
        click.echo(f"{letters} left. To replay:", err=True)
        click.echo(
            f"  hookline dead replay --endpoint {chosen['endpoint_id']} --since {chosen['since']}", err=True
        )
        return tried
    from hookline.cli.job import run_job

    job = run_job(client, "/v1/replays", chosen)
    click.echo(f"{counted(job['done'], 'dead letter', 'dead letters')} replayed.", err=True)
    return job
