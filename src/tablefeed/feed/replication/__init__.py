"""A table kept equal to another one: its commits copied, with their files, into the log of a second table."""
