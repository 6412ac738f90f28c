"""A Delta table's schema and what its fields' metadata says: column mapping, identity, rules, partitioning."""
