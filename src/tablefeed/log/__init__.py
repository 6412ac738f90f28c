"""What follows from a log without touching one: segments, replay, admission, plans, conflicts.

Pure functions over the model's values; no dialect, no files, no clock. pyarrow only where a snapshot is columns.
"""
