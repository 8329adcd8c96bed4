"""A real SMTP server on a real socket, with STARTTLS and a certificate of its own authority."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

USER, PASSWORD = "hookline", "pa ss/w0rd%"


class MailServer:
    """Keeps what it was sent; `answer` is given to each message."""

    def __init__(self) -> None:
        self.answer = "250 kept"
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.was_encrypted: list[bool] = []
        self.port = 0
        self.authority = Path()  # the certificate that clients must trust

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            message = message_from_bytes(envelope.content, policy=policy.default)
            self.messages.append(message)
            self.recipients += envelope.rcpt_tos
            self.was_encrypted.append(session.ssl is not None)
        return self.answer

    def texts(self) -> list[str]:
        return [each.get_content() for each in self.messages]

    def subjects(self) -> list[str]:
        return [each["Subject"] for each in self.messages]


def _is_known(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    is_right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=is_right)


@contextmanager
def mail_server(folder: Path, *, starttls: bool = True, login: bool = False) -> Iterator[MailServer]:
    server = MailServer()
    authority = trustme.CA()
    server.authority = folder / "authority.pem"
    authority.cert_pem.write_to_path(server.authority)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def make() -> SMTP:
        return SMTP(
            server,
            hostname="localhost",
            loop=loop,
            tls_context=context if starttls else None,
            require_starttls=starttls,
            authenticator=_is_known,
            auth_required=login,
        )

    listening = asyncio.run_coroutine_threadsafe(loop.create_server(make, "127.0.0.1", 0), loop).result()
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_close(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(server: asyncio.Server) -> None:
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
