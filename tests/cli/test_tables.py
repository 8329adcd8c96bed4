"""A list is a table that fits: nothing is wrapped, and what is cut says so."""

import pytest

from hookline.cli.output import print_rows
from hookline.cli.printing.columns import delivery_state, endpoint_state
from hookline.cli.printing.table import Column, cut, cut_inside, table_lines, width_of
from hookline.cli.printing.times import relative, span

ROWS = [
    {
        "id": "ep_0123456789",
        "url": "hooks.example.com/" + "x" * 60 + "/end",
        "type": "order.paid",
        "tries": 7,
    },
    {"id": "ep_abcdefghij", "url": "short.example/", "type": "a", "tries": 12},
]
COLUMNS = [
    Column("ID", lambda row: row["id"]),
    Column("URL", lambda row: row["url"], least=12, is_cut_inside=True),
    Column("TYPE", lambda row: row["type"], least=6, rank=2),
    Column("TRIES", lambda row: str(row["tries"]), is_number=True, rank=1),
]


def lines(room, *, is_coloured=False, columns=COLUMNS, rows=ROWS):
    return table_lines(rows, columns, room=room, is_coloured=is_coloured)


def test_without_a_terminal_nothing_is_cut_or_left_out():
    assert [line.split() for line in lines(None)] == [
        ["ID", "URL", "TYPE", "TRIES"],
        *([str(row[name]) for name in ("id", "url", "type", "tries")] for row in ROWS),
    ]


@pytest.mark.parametrize("room", range(1, 140))
def test_no_line_is_wider_than_the_terminal(room):
    assert max(map(len, lines(room))) <= room


def test_long_cells_are_cut_first_then_columns_are_left_out_by_rank():
    assert lines(60) == [
        "ID             URL                         TYPE        TRIES",
        "ep_0123456789  hooks.example…xxxxxxxx/end  order.paid      7",
        "ep_abcdefghij  short.example/              a              12",
    ]
    assert "TYPE" not in lines(38)[0]
    assert "TRIES" in lines(38)[0]
    assert "TRIES" not in lines(30)[0]
    assert [line.split()[0] for line in lines(30)] == ["ID", "ep_0123456789", "ep_abcdefghij"]


def test_where_nothing_fits_the_first_columns_are_shown_and_cut():
    assert lines(10) == ["ID", "ep_012345…", "ep_abcdef…"]


def test_a_colour_takes_no_room_and_is_not_sent_unless_asked_for():
    red = Column("STATE", lambda row: "dead", colour=lambda row: "red")
    columns = [red, COLUMNS[0]]
    assert lines(80, columns=columns)[1] == "dead   ep_0123456789"
    coloured = lines(80, columns=columns, is_coloured=True)
    assert coloured[1] == "\x1b[31mdead \x1b[0m  ep_0123456789"
    assert coloured[0].startswith("\x1b[1mSTATE\x1b[0m")


def test_control_characters_are_made_visible_and_an_empty_cell_is_a_dash():
    columns = [Column("TEXT", lambda row: row["text"])]
    rows = [{"text": "\x1b[2J\u202e"}, {"text": ""}]
    assert lines(80, columns=columns, rows=rows) == ["TEXT", "\\x1b[2J\\u202e", "-"]


def test_wide_characters_count_for_two_columns():
    assert (width_of("日本"), width_of("é"), width_of("e\u0301")) == (4, 1, 1)
    assert (cut("日本語", 5), cut("日本語", 6), cut("abc", 2)) == ("日本…", "日本語", "a…")


def test_a_url_keeps_both_ends():
    assert cut_inside("hooks.example.com/customers/42", 17) == "hooks.ex…omers/42"
    assert cut_inside("short", 17) == "short"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (100.0, "now"),
        (99.5, "now"),
        (41.0, "59s ago"),
        (40.0, "1m ago"),
        (-3_499.9, "59m ago"),
        (-3_500.0, "1h ago"),
        (-86_300.0, "1d ago"),
        (-40_000_000.0, "462d ago"),
        (101.5, "in 1s"),
        (340.0, "in 4m"),
        (100 + 7_200.0, "in 2h"),
    ],
)
def test_times_are_said_in_their_largest_unit(at, said):
    assert relative(at, now=100.0) == said


def test_a_span_of_nothing():
    assert span(0.2) == "0s"


def test_a_column_may_hold_the_first_of_several_fields_that_there_is(capsys):
    rows = [
        {"id": 1, "last_status": 503, "last_error": {"kind": "http_5xx"}},
        {"id": 2, "last_status": None, "last_error": {"kind": "connect_refused"}},
        {"id": 3, "last_status": None, "last_error": None},
    ]
    print_rows(rows, ("id", "last_answer=last_status|last_error.kind"), as_json=False)
    assert capsys.readouterr().out.split() == [
        "ID", "LAST_ANSWER", "1", "503", "2", "connect_refused", "3", "-"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "dead"}, "dead"),
        ({"in_flight": True}, "sending"),
        ({"waiting_for": "circuit"}, "pending/circuit"),
        ({"waiting_for": "due"}, "pending"),
        ({}, "pending"),
    ],
)
def test_a_pending_delivery_says_what_it_waits_for(fields, said):
    assert delivery_state({"state": "pending", "in_flight": False, "waiting_for": None, **fields}) == said


@pytest.mark.parametrize(
    ("fields", "circuit", "said"),
    [
        ({}, "closed", "active"),
        ({"enabled": False}, "closed", "disabled"),
        ({"paused": True}, "open", "paused, circuit open"),
        ({"slow": True}, "half_open", "circuit half open, slow"),
        ({"problems": [{"field": "url"}]}, "closed", "invalid"),
    ],
)
def test_an_endpoint_says_what_holds_it_back(fields, circuit, said):
    endpoint = {"enabled": True, "paused": False, "slow": False, "problems": [], **fields}
    assert endpoint_state({**endpoint, "circuit_state": {"state": circuit}}) == said
