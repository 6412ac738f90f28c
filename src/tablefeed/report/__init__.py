"""`tablefeed report`: one page of HTML about a table or a query. It needs no network, and no text of a table is markup.

`page` gathers and assembles; `table_part` and `query_part` say what is shown; `figures` draws; `page.css` and `page.js`
are put into each page. The size of a page is bounded: commits are counted in at most `buckets.MOST` spans of time, and
tables have at most `figures.MOST_ROWS` rows.
"""
