"""One put that makes written files part of a table: its entry, concurrent commits, retries, and files that lost."""
