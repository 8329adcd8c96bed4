"""Tells this process at once what an operator changed.

The other processes hear of it with their next pulse.
"""

from hookline.model import EndpointId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.lanes.handover import Handover


class Changes:
    """Brings the catalogue up to date and lets lanes look again."""

    def __init__(self, catalogue: Catalogue, handover: Handover) -> None:
        self._catalogue = catalogue
        self._handover = handover

    async def tell(self, *lanes: EndpointId) -> None:
        """Something was changed; of these lanes, rows were made due or may be sent again."""
        await self._catalogue.include_own()
        for lane in lanes:
            self._handover.announce(lane)
