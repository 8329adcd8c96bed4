"""When a child process that died is started again."""

from hookline.rules.restarts import LONGEST, SHORTEST, STEADY, deaths_in_a_row, pause_after


def test_pauses_grow_from_the_shortest_to_the_longest():
    pauses = [pause_after(deaths) for deaths in range(1, 200)]
    assert pauses[:3] == [SHORTEST, 2 * SHORTEST, 4 * SHORTEST]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST


def test_deaths_count_in_a_row_until_one_lived_long():
    assert deaths_in_a_row(0, lived=0.1) == 1
    assert deaths_in_a_row(4, lived=STEADY - 0.1) == 5
    assert deaths_in_a_row(4, lived=STEADY) == 1
