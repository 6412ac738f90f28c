"""One streaming query's feed: where it begins and ends, its offsets, its snapshot and tail, and its tracked schema."""
