"""Sends requests to receivers."""

from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.contract import Request, Sender, SendResult, Target
from hookline.pipeline.sending.target import parse

__all__ = ["HttpSender", "Request", "SendResult", "Sender", "Target", "parse"]
