"""Defines how a store keeps who may call."""
