"""What changes no row of a table: checkpoints, checksums, log cleanup, optimize and vacuum."""
