"""What tests of several rooms share. Import it as `support`: pyproject.toml puts `tests` on the path."""
