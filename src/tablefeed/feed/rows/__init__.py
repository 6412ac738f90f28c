"""Row changes: what change events make of the rows of a table, and what must be remembered between batches."""
