"""Reads what pages about dead letters need to know of endpoints."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from hookline.api.inside import CallersApi
from hookline.errors import NotFound


async def endpoints_of(api: CallersApi, ids: Iterable[str]) -> dict[str, Any]:
    """The endpoints that exist, by id."""

    async def one(id: str) -> Any:
        try:
            return await api.get("/v1/endpoints/{endpoint_id}", endpoint_id=id)
        except NotFound:
            return None  # deleted

    names = list(dict.fromkeys(ids))
    found = await asyncio.gather(*(one(id) for id in names))
    return {id: each for id, each in zip(names, found, strict=True) if each is not None}


async def accepted_at(api: CallersApi, endpoints: Mapping[str, Any]) -> dict[str, str]:
    """When each accepted something last, as far as it is known. Without a circuit nobody notes it."""

    async def one(endpoint: Any) -> str | None:
        noted: str | None = endpoint.circuit_state.last_success_at
        if noted is not None:
            return noted
        query = {"endpoint_id": endpoint.id, "state": "delivered", "limit": "1"}
        page = await api.get("/v1/deliveries", query)
        return page.data[0].delivered_at if page.data else None

    found = await asyncio.gather(*(one(each) for each in endpoints.values()))
    return {id: at for id, at in zip(endpoints, found, strict=True) if at is not None}
