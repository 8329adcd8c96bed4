"""Which calls are about the installation as a whole?"""

from hookline.client import call as calls
from hookline.client.aio.listing import AsyncListing, Sends
from hookline.client.answers import Alert, Health, Worker


class InstallationCalls(Sends):
    """Is it well, and who may use it?"""

    async def health(self) -> Health:
        """How the whole installation is doing."""
        return await self.send(calls.get("/v1/health", Health))

    def alerts(self) -> AsyncListing[Alert]:
        """What an operator should look at."""
        return AsyncListing(self, "/v1/alerts", Alert)

    def workers(self) -> AsyncListing[Worker]:
        """The processes that deliver."""
        return AsyncListing(self, "/v1/workers", Worker)
