"""What the name of a table means in a catalog: its location, credentials, commits. Opens no table."""
