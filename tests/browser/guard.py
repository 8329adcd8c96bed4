"""Collects what a page must not do: break its policy, fail, or leave its server."""

import contextlib
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Request, WebError


class Guard:
    """Watches contexts; nothing is added to their pages."""

    def __init__(self) -> None:
        self._troubles: list[str] = []
        self._contexts: list[BrowserContext] = []

    def watch(self, context: BrowserContext, *, origin: str) -> None:
        """From now on, for all pages of the context, which are to stay with this server."""

        def on_request(request: Request) -> None:
            url = urlsplit(request.url)
            if url.scheme not in ("data", "blob", "about") and f"{url.scheme}://{url.netloc}" != origin:
                self._troubles.append(f"elsewhere: {request.url}")

        self._contexts.append(context)
        context.on("request", on_request)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)

    def take(self) -> list[str]:
        """What was seen so far, each as `kind: text`; it is forgotten then. For pages that are meant to be in trouble."""
        for context in self._contexts:
            for page in context.pages:
                with contextlib.suppress(Error):
                    page.evaluate("0")  # what the page reported before this answer has arrived with it
        taken, self._troubles = self._troubles, []
        return taken

    def check(self) -> None:
        """Fail if anything was seen."""
        if troubles := self.take():
            raise AssertionError("\n".join(troubles))

    def _on_console(self, message: ConsoleMessage) -> None:
        is_policy = "Content Security Policy" in message.text
        if is_policy or message.type == "error":
            self._troubles.append(f"{'policy' if is_policy else 'console'}: {message.text}")

    def _on_error(self, error: WebError) -> None:
        self._troubles.append(f"script: {error.error}")
