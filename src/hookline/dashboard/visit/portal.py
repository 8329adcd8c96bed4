"""Gives the customers' portal its name, logo and colour, and says which sites may frame it."""

from pathlib import Path

from starlette.responses import Response

from hookline.config import Settings
from hookline.errors import ConfigError
from hookline.rules.accent import accent

LOGO_LIMIT_BYTES = 64 << 10
_CACHE = "private, max-age=3600"
_PNG = b"\x89PNG\r\n\x1a\n"


class Portal:
    """How the portal looks."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.portal_name
        self.ancestors = settings.portal_frame_ancestors
        self._theme = "" if settings.portal_accent is None else _stylesheet(settings.portal_accent)
        self._logo, self._media = _logo(settings.portal_logo)

    @property
    def has_logo(self) -> bool:
        return self._logo is not None

    @property
    def has_theme(self) -> bool:
        return bool(self._theme)

    def theme(self) -> Response:
        """A small stylesheet with the colours."""
        return Response(
            self._theme, headers={"content-type": "text/css; charset=utf-8", "cache-control": _CACHE}
        )

    def logo_file(self) -> Response:
        """The logo, as an image that can do nothing else."""
        if self._logo is None:
            return Response("Not found.", 404, media_type="text/plain")
        return Response(
            self._logo,
            headers={
                "content-type": self._media,
                "cache-control": _CACHE,
                "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
            },
        )


def _stylesheet(colour: str) -> str:
    shown = accent(colour)
    return (
        f":root {{ --accent: light-dark({shown.light}, {shown.dark}); "
        f"--on-accent: light-dark({shown.text_on_light}, {shown.text_on_dark}); "
        f"--data-1: light-dark({shown.light}, {shown.dark}); }}\n"
    )


def _logo(path: str | None) -> tuple[bytes | None, str]:
    if path is None:
        return None, ""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"portal_logo: {path} cannot be read: {error.strerror}.") from None
    if len(content) > LOGO_LIMIT_BYTES:
        raise ConfigError(f"portal_logo: {path} has more than {LOGO_LIMIT_BYTES:,} bytes.")
    if content.startswith(_PNG):
        return content, "image/png"
    if b"<svg" in content[:1_000].lower():
        return content, "image/svg+xml"
    raise ConfigError(f"portal_logo: {path} is neither SVG nor PNG.")
