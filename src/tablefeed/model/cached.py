"""A property that is computed once and then kept."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

Value = TypeVar("Value")


class cached_property(functools.cached_property[Value]):  # noqa: N801, TID251 - its own name; only this one may
    """As Python 3.12 has it, on 3.11 too: no lock is held while a value is computed.

    Python 3.11 has one lock for all objects of a class: a table whose store is slow would hold up all other tables of
    the process. Two threads that ask the same object at once may both compute its value.
    """

    if not TYPE_CHECKING:  # its types are those of the class that it extends

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept[self.attrname] = self.func(instance)
            return kept[self.attrname]
