"""Keeps who may call in PostgreSQL."""
