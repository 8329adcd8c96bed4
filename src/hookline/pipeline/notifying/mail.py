"""Sends mail through an SMTP server."""

import ssl
from email.message import EmailMessage
from email.utils import formatdate

import msgspec

from hookline.clock import Clock
from hookline.rules.people import Message


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
    """Sends one message at a time, each over a connection of its own: mail is rare."""

    def __init__(self, settings: MailSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def send(self, address: str, message: Message, *, id: str) -> str:
        """Hand the message to the server; its answer. `MailRefused` if it does not take it.

        The same `id` gives the same Message-ID: a message that is sent twice can be recognised.
        """
        import aiosmtplib  # only who sends mail loads it

        settings = self._settings
        try:
            _, answer = await aiosmtplib.send(
                self._composed(address, message, id=id),
                sender=settings.sender,
                recipients=[address],
                hostname=settings.host,
                port=settings.port,
                username=settings.username,
                password=settings.password,
                use_tls=settings.tls == "tls",
                start_tls=settings.tls == "starttls",
                tls_context=None if settings.tls == "none" else ssl.create_default_context(),
                timeout=10,
            )
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise MailRefused(f"{settings.host}:{settings.port}: {_line(error)}") from None
        return " ".join(answer.split())

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


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
