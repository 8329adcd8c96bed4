"""Which values does an option take that knows them all?

Refused here they are a usage error, before anything is asked of a server. They are written out once more, because the
modules that define them take longer to load than most commands to run.
"""

import click

STATES = ("pending", "delivered", "dead", "cancelled")
FINISHED = STATES[1:]
CIRCUITS = ("closed", "open", "half_open")
REASONS = ("exhausted", "rejected", "gone", "crash_limit")
STYLES = ("standard", "classic")
ORDERINGS = ("parallel", "strict")
SIGNATURES = ("v1", "v1a")
SCOPES = ("publish", "read", "admin")

state_option = click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
