"""What does somebody need who receives webhooks from hookline?

Nothing of the server is imported for it.
"""

from hookline.receiver.refusal import Refusal, VerificationError
from hookline.receiver.verification import TOLERANCE, Verified, verify

__all__ = ["TOLERANCE", "Refusal", "VerificationError", "Verified", "verify"]
