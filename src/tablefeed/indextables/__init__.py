"""The bytes of IndexTables4Spark's tables to and from the model. Never a store, a feed or the other dialect.

Third party: orjson, and pyarrow on buffers and columns.
"""
