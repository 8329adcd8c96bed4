"""Builds metrics of Prometheus' client library from figures."""

from collections.abc import Mapping
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from hookline.pipeline.histogram import Distribution


def gauge(name: str, help: str, value: float | None) -> Metric:
    """A figure that goes up and down; None: it is not known, and has no sample."""
    family = GaugeMetricFamily(name, help)
    if value is not None:
        family.add_metric([], value)
    return family


def gauges(name: str, help: str, label: str, values: Mapping[str, float]) -> Metric:
    """Such figures, by label."""
    family = GaugeMetricFamily(name, help, labels=[label])
    for each, value in values.items():
        family.add_metric([each], value)
    return family


def counter(name: str, help: str, value: float) -> Metric:
    """A count since the process started."""
    return CounterMetricFamily(name, help, value=value)


def counters(name: str, help: str, label: str, values: Mapping[str, float]) -> Metric:
    """Such counts, by label."""
    family = CounterMetricFamily(name, help, labels=[label])
    for each, value in values.items():
        family.add_metric([each], value)
    return family


def histogram(name: str, help: str, values: Distribution) -> Metric:
    """How values are distributed since the process started."""
    family = HistogramMetricFamily(name, help)
    ends = [*map(_shown, values.edges), "+Inf"]
    family.add_metric([], [*zip(ends, accumulate(values.counts), strict=True)], values.total)
    return family


def _shown(edge: float) -> str:
    """As Prometheus itself writes it: the same edge is always the same label."""
    return repr(float(edge))
