"""Spark's words to and from the feed's words. No decisions: those are `tablefeed.feed`'s."""
