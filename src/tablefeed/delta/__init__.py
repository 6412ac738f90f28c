"""Delta Lake's bytes to and from the model. Never a store, a feed or the other dialect.

Names, paths, codecs and rules of one format, each beside the title of the PROTOCOL.md section it obeys.
Third party: orjson, and pyarrow on buffers and columns.
"""
