"""What a scrape of /metrics says, read with the parser of Prometheus' own client."""

from collections.abc import Mapping

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

Figures = Mapping[str, float]  # by name and labels, as it is written: hookline_deliveries{state="dead"}


def families(text: str) -> dict[str, Metric]:
    """Every metric, by the name in its TYPE line."""
    found: dict[str, Metric] = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert name not in found, f"{name} stands twice"
        found[name] = family
    return found


def figures(text: str) -> Figures:
    """Every sample."""
    found: dict[str, float] = {}
    for family in families(text).values():
        for sample in family.samples:
            shown = ",".join(f'{label}="{value}"' for label, value in sample.labels.items())
            name = f"{sample.name}{{{shown}}}" if shown else sample.name
            assert name not in found, f"{name} stands twice"
            found[name] = sample.value
    return found
