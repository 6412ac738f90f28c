"""Writes rows to data files, which no commit names yet: a write's plan, its target schema, its rules and its tasks."""
