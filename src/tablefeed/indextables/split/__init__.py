"""A split, the data file of an IndexTables table: Tantivy's bytes to columns of rows and back."""
