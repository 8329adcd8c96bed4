"""The columns of an endpoint are the fields of the model."""

from hookline.model import Endpoint
from hookline.store.endpoint_columns import COLUMNS

NOT_STORED = {"unread"}  # what reading a row found


def test_each_field_of_an_endpoint_has_a_column():
    assert COLUMNS.keys() == set(Endpoint.__struct_fields__) - NOT_STORED
