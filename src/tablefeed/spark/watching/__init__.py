"""Reports what streaming queries do, to metrics and to OpenLineage: what listeners of Spark make of its events."""
