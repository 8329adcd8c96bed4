"""Who carries requests to receivers?"""

from hookline.pipeline.sender.contract import Answer, Request, Sender, Target
from hookline.pipeline.sender.http import HttpSender
from hookline.pipeline.sender.target import parse

__all__ = ["Answer", "HttpSender", "Request", "Sender", "Target", "parse"]
