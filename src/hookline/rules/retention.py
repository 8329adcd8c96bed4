"""From when on is something that is finished too old to be kept?"""

import msgspec

from hookline.model import LONG_AGO

DAY = 86_400.0


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """How long what is finished is kept, in seconds; None: for ever."""

    done: float | None  # delivered or cancelled
    dead: float | None

    @property
    def is_everything(self) -> bool:
        return self.done is None and self.dead is None


class CutOffs(msgspec.Struct, frozen=True):
    """What finished before these moments can go."""

    done: float
    dead: float


def keep_from_days(*, delivered: int, dead: int) -> Keep:
    """As the settings say it: 0 days are for ever."""
    return Keep(done=delivered * DAY or None, dead=dead * DAY or None)


def cut_offs(keep: Keep, *, now: float) -> CutOffs:
    """What is kept for ever was finished before no moment at all."""
    return CutOffs(
        LONG_AGO if keep.done is None else now - keep.done,
        LONG_AGO if keep.dead is None else now - keep.dead,
    )
