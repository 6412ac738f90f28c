"""Splits, the data files of an IndexTables table: decodes Tantivy's bytes to columns of rows, and encodes them."""
