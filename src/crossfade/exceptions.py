"""Errors and warnings that a caller may want to catch or to filter.

::

    ValueError
      PriorMismatchError      a prior of other features, units or classes
      NoDirectionError        classes that do not differ, or sources that cancel
    UserWarning
      CancellingSourcesWarning  the crowd's directions cancel: only the person's own is used
      ContradictionWarning      a person's labelled windows contradict the crowd
      MissingPartWarning        a prior lacks what is asked of it, which goes on without it
      DroppedWindowsWarning     windows with missing features were left out
      TableWarning              something in a table may mislead: a counter, a copy of the label
      UncountedReleaseWarning   a prior without a ledger was released
      UnitsWarning              windows cannot be in the units of the prior
"""


class PriorMismatchError(ValueError):
    """A prior does not fit the windows, or another prior: other features, units or classes."""


class NoDirectionError(ValueError):
    """There is no direction: the classes do not differ, or the sources cancel out."""


class CancellingSourcesWarning(UserWarning):
    """The directions of the sources cancel out; only the person's own is used."""


class ContradictionWarning(UserWarning):
    """The labelled windows of a person contradict the crowd: its classes lie the other way."""


class MissingPartWarning(UserWarning):
    """A prior lacks a part that is asked for; the message says what is lost."""


class DroppedWindowsWarning(UserWarning):
    """Windows in which features are missing were left out."""


class TableWarning(UserWarning):
    """Something in a table of tasks may mislead; the message says what, and what to do."""


class UncountedReleaseWarning(UserWarning):
    """A prior without a ledger was released: nobody counts the privacy that is spent."""


class UnitsWarning(UserWarning):
    """Windows cannot be in the units of the prior: they vary, or lie, too far from its people's."""
