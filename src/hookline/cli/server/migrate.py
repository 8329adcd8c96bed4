"""Applies the migrations that the database needs."""

import asyncio

from hookline.app import store_for
from hookline.config import Settings


def run(settings: Settings) -> list[str]:
    """Apply the missing migrations; returns their names."""
    return asyncio.run(store_for(settings.database).migrate())


def look(settings: Settings) -> list[str]:
    """The names of the migrations that would be applied."""
    return asyncio.run(store_for(settings.database).outstanding())
