"""Says in the audit trail who works on the database from a command line."""

import os
import pwd
import socket

from hookline.admin.audit import Origin
from hookline.model import Actor, ActorKind, Via


def command_line() -> Origin:
    """The operating system's user on this machine. What variables such as USER say, anybody can set."""
    return Origin(
        actor=Actor(kind=ActorKind.COMMAND_LINE, name=_user()), via=Via.CLI, address=socket.gethostname()
    )


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container that was given any number
        return str(os.getuid())
