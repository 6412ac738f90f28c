"""Converts the bytes of IndexTables' log and splits to the model and back. No store, no feed, not the other format.

Its log comes in three flavours: JSON versions, Avro states that are themselves the commits, and both (listing.py).
Names and listings in, files to read out; bytes in, commits and columns of files out. Third party: orjson, pyarrow on
buffers and columns, and fastavro (the extra `indextables`) where Avro is read or written.

IndexTables has no specification that its writers follow. The code here follows what they write, by section of the
format notes: "names", "version files", "actions", "states".
"""
