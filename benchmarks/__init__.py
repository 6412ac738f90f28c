"""What tablefeed costs, in numbers with the Delta JAR's beside them from the same run (docs/explanation/benchmarks.md).

`python -m benchmarks --peer-jars=FOLDER` answers each question of `questions.py`: it makes the tables, starts the two
sides alternating, each in its own process, and writes medians, ratios and goals to `benchmarks/results`.
"""
