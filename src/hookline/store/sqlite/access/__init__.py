"""Keeps who may call in SQLite."""
