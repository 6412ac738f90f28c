"""Checkpoints, checksums and log compactions of a Delta log: their names, their bytes and their schemas."""
