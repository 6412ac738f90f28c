"""Plans and reads tasks: parses predicates, prunes data files, spreads them over tasks, and reads a task's rows."""
