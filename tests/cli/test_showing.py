"""What the columns of a table show."""

from hookline.cli.commands.deliveries import ANSWER
from hookline.cli.output import print_rows


def test_a_column_may_hold_the_first_of_several_fields_that_there_is(capsys):
    rows = [
        {"id": 1, "last_status": 503, "last_error": {"kind": "http_5xx"}},
        {"id": 2, "last_status": None, "last_error": {"kind": "connect_refused"}},
        {"id": 3, "last_status": None, "last_error": None},
    ]
    print_rows(rows, ("id", ANSWER), as_json=False)
    assert capsys.readouterr().out.split() == [
        "ID", "LAST_ANSWER", "1", "503", "2", "connect_refused", "3", "-"
    ]  # fmt: skip
