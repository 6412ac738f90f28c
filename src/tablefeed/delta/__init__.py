"""Converts the bytes of a Delta log to the model and back. Imports no store, no feed and not the other format.

Names, paths, codecs and rules of one format. Each cites the PROTOCOL.md section that it follows.
Third party: orjson, and pyarrow on buffers and columns.
"""
