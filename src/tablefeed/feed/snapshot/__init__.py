"""One table's log, read: which format it has, its versions and their times, and the live files of each version.

Reads through a store and decodes with `tablefeed.delta` or `tablefeed.indextables`. Opens no data file, writes nothing.
"""
