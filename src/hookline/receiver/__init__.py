"""What does somebody need who receives webhooks from hookline?

Nothing of the server, and no database driver, is imported for it.
"""

from hookline.receiver.connections import NoTransaction, UnknownConnection
from hookline.receiver.once import AsyncProcessOnce, ProcessOnce
from hookline.receiver.refusal import Refusal, VerificationError
from hookline.receiver.verification import TOLERANCE, Verified, verify

__all__ = [
    "TOLERANCE",
    "AsyncProcessOnce",
    "NoTransaction",
    "ProcessOnce",
    "Refusal",
    "UnknownConnection",
    "VerificationError",
    "Verified",
    "verify",
]
