"""The values that both log formats share: versions, offsets, commits, files, schemas.

Nothing here knows the bytes of a log, reads a file or the clock, or imports anything outside the standard library.
"""
