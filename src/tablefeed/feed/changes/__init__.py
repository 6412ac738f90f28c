"""What commits did to the rows of a table: which versions, which files, and the change feed's columns and rules."""
