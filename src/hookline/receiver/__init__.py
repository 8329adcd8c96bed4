"""Helps receivers of hookline's webhooks to verify them and process each once.

It imports nothing of the server and no database driver.
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
