"""The command that receives webhooks and shows them to a person."""

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hookline.cli.commands.signatures import check_usable, secret_options, secrets_of
from hookline.cli.exits import FAILED, USAGE, CommandError, Errors
from hookline.cli.options import connect, json_option, read_account, read_span, url_option
from hookline.cli.output import counted
from hookline.cli.streams import OutputFailed

if TYPE_CHECKING:
    from hookline.cli.listener.arrivals import Arrival
    from hookline.cli.listener.listener import Listener, Manners
    from hookline.cli.listener.registration import Wanted


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=9000,
    show_default=True,
    metavar="N",
    help="Port to listen on, 0 for a free one.",
)
@secret_options
@click.option(
    "--status",
    type=click.IntRange(200, 599),
    metavar="N",
    help="Respond with this status.  [default: 200, or 401 if the signature is wrong]",
)
@click.option(
    "--delay",
    callback=read_span,
    default="0s",
    metavar="DURATION",
    help="Wait this long before responding, such as 2s.",
)
@click.option(
    "--fail-first",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Respond with 503 to the first N requests of each event.",
)
@click.option("--forward", metavar="URL", help="Forward each request to this URL and return its response.")
@click.option(
    "--register",
    is_flag=True,
    help="Make the server send here: create an endpoint, at later starts use the same one. Prints its secret.",
)
@click.option("--unregister", is_flag=True, help="Delete the endpoint that --register created, and exit.")
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="PATTERN",
    help="Event types to subscribe to, with --register; can be repeated.  [default: *]",
)
@click.option("--account", callback=read_account, help="Account of the endpoint, with --register.")
@click.option(
    "--as", "public", metavar="URL", help="URL at which the server can reach this receiver, with --register."
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Exit after this many requests.")
@click.option("--headers", is_flag=True, help="Also print the headers.")
@url_option
@json_option
def listen(**options: Any) -> None:
    """Run a development receiver that prints and verifies webhooks. It can also forward them.

    Ctrl-C ends it.
    """
    with Errors():
        _listen(**options)


def _listen(
    *,
    host: str,
    port: int,
    secrets: tuple[str, ...],
    secret_files: tuple[Path, ...],
    status: int | None,
    delay: float,
    fail_first: int,
    forward: str | None,
    register: bool,
    unregister: bool,
    events: tuple[str, ...],
    account: str | None,
    public: str | None,
    count: int | None,
    headers: bool,
    url: str | None,
    as_json: bool,
) -> None:
    from hookline.cli.listener.registration import Wanted

    if register and unregister:
        raise CommandError("--register and --unregister cannot be combined.", USAGE)
    if not (register or unregister) and (events or account or public):
        raise CommandError("--event, --account and --as need --register.", USAGE)
    if unregister:
        _unregister(url, Wanted(public or _reachable(_place(host, port)), [], account))
        return
    from hookline.cli.client import address_of
    from hookline.cli.listener.listener import Manners

    if forward is not None:
        address_of(forward, option="--forward")
    given = tuple(secrets_of(secrets, secret_files))
    for secret in given:
        check_usable(secret)
    ending = _Ending()
    show = _Screen(ending, count=count, headers=headers, as_json=as_json)
    manners = Manners(given, status, delay, fail_first, forward)
    with ending.by_signals():
        with _bound(host, port, manners, show) as listener, contextlib.ExitStack() as begun:
            place = _place(host, listener.server_port)
            if register:
                wanted = Wanted(public or _reachable(place), list(events) or ["*"], account)
                is_kept = port != 0 or public is not None  # else nobody listens at its URL a second time
                secret = begun.enter_context(_registered(url, wanted, is_kept=is_kept))
                listener.manners = manners._replace(secrets=(*given, secret))
            begun.enter_context(_serving(listener))  # now: what arrived meanwhile has waited, and is checked
            how = "" if listener.manners.secrets else "; signatures are not checked (add --secret)"
            click.echo(f"listening on {place}{how}", err=True)
            ending.wait()
        click.echo(f"{counted(show.seen, 'request', 'requests')}.", err=True)
    if show.failed is not None:
        raise show.failed


class _Ending:
    """The request to end, from a signal or from a thread.

    A pipe and no `threading.Event`: a signal's handler interrupts the main thread anywhere, and inside the event's own
    `wait` it would wait for itself. The interpreter writes to the pipe too: it runs the handler between two steps of
    the main thread, and a signal just before `read` would otherwise wait for a second one.
    """

    def __init__(self) -> None:
        self._ear, self._mouth = os.pipe()
        os.set_blocking(self._mouth, False)
        self._signals = 0

    def ask(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: the end was requested before
            os.write(self._mouth, b".")

    def wait(self) -> None:
        os.read(self._ear, 1)

    @contextlib.contextmanager
    def by_signals(self) -> Iterator[None]:
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        listener = signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(listener)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        self._signals += 1
        if self._signals > 2:  # the first two may be one request: `timeout` sends each signal twice
            raise KeyboardInterrupt  # end at once
        self.ask()


class _Screen:
    """Shows what arrives, until enough has arrived."""

    def __init__(self, ending: _Ending, *, count: int | None, headers: bool, as_json: bool) -> None:
        self.seen = 0
        self.failed: OutputFailed | None = None
        self._ending = ending
        self._count = count
        self._headers = headers
        self._as_json = as_json

    def __call__(self, arrival: "Arrival") -> None:
        from hookline.cli.listener.arrivals import as_line, as_text

        if self._count is not None and self.seen >= self._count:
            return
        self.seen += 1
        try:
            click.echo(as_line(arrival) if self._as_json else as_text(arrival, headers=self._headers))
        except OutputFailed as error:  # the reader of the pipe has gone, or the disk is full
            self.failed = error
            self._ending.ask()
        if self.seen == self._count:
            self._ending.ask()


@contextlib.contextmanager
def _bound(host: str, port: int, manners: "Manners", show: _Screen) -> Iterator["Listener"]:
    from hookline.cli.listener.listener import Listener

    try:
        listener = Listener(host, port, manners, show)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        hint = (
            " Is a receiver running already? --port 0 takes any free port."
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            else ""
        )
        text = f"cannot listen on {host} port {port} (--host, --port): {why}.{hint}"
        raise CommandError(text, FAILED) from None
    try:
        yield listener
    finally:
        listener.server_close()


@contextlib.contextmanager
def _serving(listener: "Listener") -> Iterator[None]:
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown()


@contextlib.contextmanager
def _registered(url: str | None, wanted: "Wanted", *, is_kept: bool) -> Iterator[str]:
    """An endpoint that sends here; yields its secret. One that is not kept is deleted at the end."""
    from hookline.cli.listener.kept_endpoints import KeptEndpoints
    from hookline.cli.listener.registration import create, register, say

    client = connect(url)
    if is_kept:
        endpoint = register(client, KeptEndpoints(client.url, wanted.url, wanted.account), wanted)
        yield endpoint.secret
        click.echo(
            f"{endpoint.id} is kept. Until the next start, deliveries to it fail, are retried, and are dead after "
            "their last attempt. --unregister deletes it.",
            err=True,
        )
        return
    created = create(client, wanted)
    say(created)
    try:
        yield created["secret"]
    finally:
        # A new connection: the server has closed the old one, which was idle too long.
        connect(url).delete(f"/v1/endpoints/{created['id']}")
        click.echo(f"{created['id']} is deleted.", err=True)


def _unregister(url: str | None, wanted: "Wanted") -> None:
    from hookline.cli.listener.kept_endpoints import KeptEndpoints
    from hookline.cli.listener.registration import unregister

    client = connect(url)
    gone = unregister(client, KeptEndpoints(client.url, wanted.url, wanted.account), wanted)
    click.echo(f"No endpoint sends to {wanted.url}." if gone is None else f"{gone} is deleted.", err=True)


def _place(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _reachable(place: str) -> str:
    """An address to send to: one that listens on all interfaces is not one."""
    return place.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
