"""How often a property of made-up bytes is tried: most by `make fuzz`, less in CI, a few times at work.

The profiles are in tests/conftest.py. Each run tries other examples, so that runs of CI add up.
"""

from __future__ import annotations

from datetime import timedelta

import hypothesis

IS_FUZZ = hypothesis.settings().max_examples == hypothesis.settings.get_profile("fuzz").max_examples
"""Whether `make fuzz` runs."""
_ONE_OF = {"fuzz": 1, "ci": 33, "dev": 200, "mutants": 400}
_AT_LEAST = 5


def examples(fuzz: int, *, deadline_s: float | None = None) -> hypothesis.settings:
    """As many examples as the profile in use stands for; `fuzz` of them are what `make fuzz` tries.

    An example that takes longer than `deadline_s` fails.
    """
    used = hypothesis.settings().max_examples
    (share,) = (of for name, of in _ONE_OF.items() if hypothesis.settings.get_profile(name).max_examples == used)
    deadline = None if deadline_s is None else timedelta(seconds=deadline_s)
    return hypothesis.settings(max_examples=max(fuzz // share, _AT_LEAST), deadline=deadline)
