"""Defines how a store keeps what hookline measures about itself."""
