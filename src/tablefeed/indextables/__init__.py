"""IndexTables' bytes to and from the model. Never a store, a feed or the other dialect.

Its log comes in three flavours: JSON versions, Avro states that are themselves the commits, and both (listing.py).
Names and listings in, files to read out; bytes in, commits and columns of files out. Third party: orjson, pyarrow on
buffers and columns, and fastavro (the extra `indextables`) where Avro is read or written.

There is no specification that its writers keep; what is obeyed here is what they write, by section of the format notes:
"names", "version files", "actions", "states".
"""
