"""A new user's first hour: tablefeed from the wheel, in an empty folder. The transcripts are what they type and see."""
