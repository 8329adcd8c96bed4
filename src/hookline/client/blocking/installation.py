"""Which calls are about the installation as a whole?"""

from hookline.client import call as calls
from hookline.client.answers import Alert, Health, Worker
from hookline.client.blocking.listing import Listing, Sends


class InstallationCalls(Sends):
    """Is it well, and who may use it?"""

    def health(self) -> Health:
        """How the whole installation is doing."""
        return self.send(calls.get("/v1/health", Health))

    def alerts(self) -> Listing[Alert]:
        """What an operator should look at."""
        return Listing(self, "/v1/alerts", Alert)

    def workers(self) -> Listing[Worker]:
        """The processes that deliver."""
        return Listing(self, "/v1/workers", Worker)
