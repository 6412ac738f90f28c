"""Rows into data files that no commit names yet: the plan of a write, the target schema, its rules and its tasks."""
