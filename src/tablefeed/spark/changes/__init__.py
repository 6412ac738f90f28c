"""Change events from Spark: a DataFrame that is applied to a table, and a sink with the option `keys`."""
