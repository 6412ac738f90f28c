"""Where bytes live: list, read, put-if-absent, wake. Knows no action and no version."""
