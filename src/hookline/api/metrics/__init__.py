"""The metrics that Prometheus reads, made when it asks."""
