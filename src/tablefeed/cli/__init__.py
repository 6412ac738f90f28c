"""The command `tablefeed`: what a user types, and what a terminal or a pipe gets.

It calls the public Python API and decides nothing about tables. Each command is imported when it is called, so that
help and completion cost little (docs/reference/command-line.md).
"""
