"""Which migrations does the database need?"""

import asyncio

from hookline.app import store_for
from hookline.config import Settings


def run(settings: Settings) -> list[str]:
    """Apply what is missing; the names of what was applied."""
    return asyncio.run(store_for(settings.database).migrate())


def look(settings: Settings) -> list[str]:
    """The names of what would be applied."""
    return asyncio.run(store_for(settings.database).outstanding())
