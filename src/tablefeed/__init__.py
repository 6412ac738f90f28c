"""tablefeed: a streaming change feed of a table's transaction log, and exactly-once commits to it."""
