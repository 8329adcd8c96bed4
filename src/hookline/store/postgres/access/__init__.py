"""Keeps who may call, with what they did, in PostgreSQL."""
