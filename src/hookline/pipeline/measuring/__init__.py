"""Measures what the pipeline does."""
