"""The calls that users make without Spark: append, appends, changes, follow and open_table."""
