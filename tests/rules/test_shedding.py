"""How many waiting lanes a worker releases to others with free slots."""

import pytest

from hookline.rules.shedding import Peer, give_up


@pytest.mark.parametrize(
    ("waiting", "peers", "given_up"),
    [
        (0, [Peer(100, False)], 0),
        (1, [Peer(100, False)], 1),  # or a single one would wait for ever
        (10, [Peer(100, False)], 5),
        (11, [Peer(100, False)], 6),
        (10, [], 0),
        (10, [Peer(0, False)], 0),
        (10, [Peer(100, True)], 0),
        (10, [Peer(1, False), Peer(2, False), Peer(100, True)], 3),
    ],
)
def test_up_to_half_go_where_there_is_room(waiting, peers, given_up):
    assert give_up(waiting, peers) == given_up
