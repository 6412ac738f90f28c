"""Keeps the newest state of each order, from a table of change events."""
