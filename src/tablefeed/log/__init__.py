"""The rules of a table's log, without reading one: segments, replay, admission, plans, conflicts.

Pure functions over the model's values; no dialect, no files, no clock. pyarrow only where a snapshot is columns.
"""
