"""Copies the commits of a table, with their files, to a second table, and keeps the copy up to date."""
