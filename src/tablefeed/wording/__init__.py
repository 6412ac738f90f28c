"""How values become text for people: words for sizes and times, and HTML whose text is escaped. Pure."""
