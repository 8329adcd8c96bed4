"""Who carries requests to receivers?"""

from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.contract import (
    Answer,
    Request,
    Sender,
    Target,
)
from hookline.pipeline.sending.target import parse

__all__ = ["Answer", "HttpSender", "Request", "Sender", "Target", "parse"]
