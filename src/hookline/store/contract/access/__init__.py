"""Defines how a store keeps who may call, with what they did."""
