"""Names the version of hookline."""

VERSION = "0.1.0"
USER_AGENT = f"hookline/{VERSION.rpartition('.')[0]}"
