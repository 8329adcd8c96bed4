from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from hookline.rules.suspicion import CRASH_LIMIT, Plan, plan


@dataclass(frozen=True)
class Suspect:
    name: str
    marks: int


def test_the_more_marks_the_fewer_go_together():
    fresh = [Suspect(f"fresh {n}", 0) for n in range(20)]
    once = [Suspect(f"once {n}", 1) for n in range(10)]
    twice, thrice, done = Suspect("twice", 2), Suspect("thrice", 3), Suspect("done", 4)
    assert plan([*fresh, twice, *once, thrice, done]) == Plan(
        condemned=(done,),
        together=tuple(fresh),
        groups=(tuple(once[:8]), tuple(once[8:])),
        alone=(twice, thrice),
    )


@given(st.lists(st.integers(0, 6), max_size=60))
def test_every_suspect_has_exactly_one_place(marks):
    suspects = [Suspect(str(n), count) for n, count in enumerate(marks)]
    made = plan(suspects)
    placed = [
        *made.condemned,
        *made.together,
        *(each for group in made.groups for each in group),
        *made.alone,
    ]
    assert sorted(placed, key=lambda s: int(s.name)) == suspects
    assert all(suspect.marks >= CRASH_LIMIT for suspect in made.condemned)
