"""Sends a message to a person on a channel."""

import asyncio
from collections.abc import Callable

import msgspec

from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.pipeline.notifying.mail import Mailer, MailRefused
from hookline.pipeline.sending.contract import Request, Sender, SendResult
from hookline.pipeline.sending.target import parse
from hookline.rules.people import Channel, Message, Recipient, masked
from hookline.rules.retry_after import asked_wait
from hookline.version import VERSION

TIMEOUT_S = 10.0  # for a request
MAIL_TIMEOUT_S = 30.0  # for a whole conversation with a mail server

_HEADERS = (
    "content-type: application/json\r\n"
    f"user-agent: hookline/{VERSION}\r\n"
    "accept-encoding: identity\r\n"
    "idempotency-key: {id}\r\n"
)
_NO_SERVER = "no mail server is set: HOOKLINE_SMTP_HOST"


class ChannelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message."""

    channel: str
    recipient: str  # as it may be shown
    ok: bool
    detail: str
    asked_wait: float | None = None  # seconds, by a `Retry-After`


class Channels:
    """Every channel; whatever happens to a message is an answer and no error."""

    def __init__(
        self, sender: Sender, clock: Clock, *, mailer: Mailer | None, canonical: Callable[[str], str]
    ) -> None:
        self._sender = sender
        self._clock = clock
        self._mailer = mailer
        self._canonical = canonical  # of a URL that may be sent to; `Invalid` for others

    @property
    def has_mail(self) -> bool:
        """Whether this process can send mail."""
        return self._mailer is not None

    async def send(self, recipient: Recipient, message: Message, *, id: str) -> ChannelAnswer:
        """Send it; the answer. The same `id` lets a receiver recognise a message that is sent twice."""
        asked = None
        try:
            if recipient.channel is Channel.EMAIL:
                ok, detail = await self._mail(recipient.address, message, id)
            else:
                data = {"text": _for_slack(message)} if recipient.channel is Channel.SLACK else message.data
                ok, detail, asked = await self._post(recipient.address, data, id)
        except HooklineError as error:
            ok, detail = False, str(error)
        return ChannelAnswer(
            channel=recipient.channel.value,
            recipient=shown(recipient),
            ok=ok,
            detail=detail,
            asked_wait=asked,
        )

    async def _mail(self, address: str, message: Message, id: str) -> tuple[bool, str]:
        if self._mailer is None:
            return False, _NO_SERVER
        try:
            async with asyncio.timeout(MAIL_TIMEOUT_S):
                return True, await self._mailer.send(address, message, id=id)
        except MailRefused as error:
            return False, str(error)
        except TimeoutError:
            return False, f"the mail server did not finish within {MAIL_TIMEOUT_S:g} s"

    async def _post(self, url: str, data: object, id: str) -> tuple[bool, str, float | None]:
        target = parse(self._canonical(url))
        headers = _HEADERS.format(id=id).encode("ascii")
        request = Request(target, headers, msgspec.json.encode(data), TIMEOUT_S)
        answered: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()

        def done(result: SendResult) -> None:
            if not answered.done():  # the one who waited may have been cancelled
                answered.set_result(result)

        self._sender.send(request, done)
        result = await answered
        if result.status is None:
            return False, result.detail or "the request was not sent", None
        if 200 <= result.status < 300:
            return True, f"{result.status}", None
        said = " ".join(result.body[:200].decode(errors="replace").split())
        return False, f"{result.status} {said}".rstrip(), self._asked_wait(result)

    def _asked_wait(self, result: SendResult) -> float | None:
        given = [value for name, value in result.headers if name.lower() == b"retry-after"]
        return asked_wait(given[0].decode("latin-1"), wall=self._clock.wall()) if given else None


def shown(recipient: Recipient) -> str:
    """An address as it may be shown: whoever knows a webhook's URL can write there."""
    return recipient.address if recipient.channel is Channel.EMAIL else masked(recipient.address)


def _for_slack(message: Message) -> str:
    """Plain text in which Slack sees no links, mentions or markup of its own."""
    text = f"*{message.subject.removeprefix('[hookline] ')}*\n{message.text}"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
