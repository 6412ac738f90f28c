"""The shell that joins logs, stores and rows. All I/O order is decided here; never pyspark."""
