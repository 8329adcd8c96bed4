"""Sends mail through an SMTP server.

A conversation has a thread of its own, and not one of the loop's few: a name server or a mail server that hangs delays
nobody, not even the process's end. One that takes too long is cut off.
"""

import asyncio
import contextlib
import smtplib
import socket
import ssl
import threading
from email.message import EmailMessage
from email.utils import formatdate
from functools import cached_property

import msgspec

from hookline.clock import Clock
from hookline.rules.people import Message

STEP_TIMEOUT_S = 10.0  # for an answer of the server


class MailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The SMTP server and how to talk to it."""

    host: str
    port: int
    tls: str  # "starttls": required before anything is said; "tls": from the start; "none"
    username: str | None
    password: str | None
    sender: str

    def __repr__(self) -> str:
        return f"MailSettings(host={self.host!r}, port={self.port}, tls={self.tls!r})"


class MailRefused(Exception):
    """The message was not taken; the text says why, in one line."""


class Mailer:
    """Sends each message over a connection of its own: mail is rare."""

    def __init__(self, settings: MailSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def send(self, address: str, message: Message, *, id: str) -> str:
        """Hand the message to the server; its answer. `MailRefused` if it does not take it.

        The same `id` gives the same Message-ID: a message that is sent twice can be recognised.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str | Exception] = loop.create_future()
        talk = _Conversation(self, address, self._composed(address, message, id=id))

        def speak() -> None:
            outcome: str | Exception
            try:
                outcome = talk.run()
            except Exception as error:
                outcome = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_give, answered, outcome)

        threading.Thread(target=speak, name="hookline-mail", daemon=True).start()
        try:
            outcome = await answered
        finally:
            talk.cut_off()
        if isinstance(outcome, str):
            return outcome
        if isinstance(outcome, smtplib.SMTPException | OSError | ValueError):
            settings = self._settings
            raise MailRefused(f"{settings.host}:{settings.port}: {_line(outcome)}") from None
        raise outcome

    @property
    def settings(self) -> MailSettings:
        """The server."""
        return self._settings

    @cached_property
    def context(self) -> ssl.SSLContext:
        """Made once, by the first conversation: it takes tens of milliseconds."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    def _composed(self, address: str, message: Message, *, id: str) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = message.subject
        mail["From"] = self._settings.sender
        mail["To"] = address
        mail["Date"] = formatdate(self._clock.wall())
        mail["Message-ID"] = f"<{id}@{self._settings.sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"  # no out-of-office answers
        mail.set_content(message.text + "\n")
        return mail


class _Conversation:
    """One message, told to the server in a thread."""

    def __init__(self, mailer: Mailer, address: str, mail: EmailMessage) -> None:
        self._mailer = mailer
        self._address = address
        self._mail = mail
        self._client: smtplib.SMTP | None = None

    def run(self) -> str:
        settings = self._mailer.settings
        name = socket.gethostname()  # or the library would ask a name server for a longer one
        with self._connected(name) as client:
            if settings.tls == "starttls":
                client.starttls(context=self._mailer.context)
            if settings.username is not None:
                client.login(settings.username, settings.password or "")
            client.ehlo_or_helo_if_needed()
            _said(client.mail(settings.sender))
            _said(client.rcpt(self._address))
            return _said(client.data(self._mail.as_bytes(policy=self._mail.policy.clone(linesep="\r\n"))))

    def _connected(self, name: str) -> smtplib.SMTP:
        settings = self._mailer.settings
        where = settings.host, settings.port, name, STEP_TIMEOUT_S
        if settings.tls == "tls":
            host, port, name, timeout = where
            client: smtplib.SMTP = smtplib.SMTP_SSL(
                host, port, name, timeout=timeout, context=self._mailer.context
            )
        else:
            client = smtplib.SMTP(*where)
        self._client = client
        return client

    def cut_off(self) -> None:
        """End it wherever it is; nothing happens if it has ended."""
        open_socket = getattr(self._client, "sock", None)
        if open_socket is not None:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)


def _said(answer: tuple[int, bytes]) -> str:
    """The server's answer; an error if it does not agree."""
    code, text = answer
    line = " ".join(text.decode(errors="replace").split())
    if not 200 <= code < 300:
        raise smtplib.SMTPResponseException(code, line)
    return f"{code} {line}"


def _give(answered: "asyncio.Future[str | Exception]", outcome: str | Exception) -> None:
    if not answered.done():
        answered.set_result(outcome)


def _line(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error
        said = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        return f"{error.smtp_code} {' '.join(said.split())}"[:300]
    return " ".join(str(error).split())[:300] or type(error).__name__
