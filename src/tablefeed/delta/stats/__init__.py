"""Per-file statistics of a Delta log: which columns have them, their JSON text, and the bounds that they give."""
