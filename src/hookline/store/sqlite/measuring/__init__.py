"""Keeps what hookline measures about itself."""
