"""Which data files and rows a reader needs, as tasks: predicates, pruning, spreading files over tasks, reading one."""
