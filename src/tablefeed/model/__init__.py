"""The words both logs speak: versions, offsets, commits, files, schemas.

Values only. Nothing here knows the bytes of a log, reads a file or asks for the time, and nothing
outside the standard library is imported.
"""
