"""The log of an IndexTables table: version files, checkpoints, Avro states, and what follows from a listing of them."""
