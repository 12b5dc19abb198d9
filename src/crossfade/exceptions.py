"""Errors and warnings that a caller may want to catch or to filter.

::

    ValueError
      PriorMismatchError      a prior of other features, units or classes
      NoDirectionError        classes that do not differ, or sources that cancel
    UserWarning
      CancellingSourcesWarning  the crowd's directions cancel, so that only the person's own is used
      DroppedWindowsWarning     windows with missing features were left out
"""


class PriorMismatchError(ValueError):
    """A prior does not fit the windows, or another prior: other features, units or classes."""


class NoDirectionError(ValueError):
    """There is no direction: the classes do not differ, or the sources cancel out."""


class CancellingSourcesWarning(UserWarning):
    """The directions of the sources cancel out, so that only the person's own is used."""


class DroppedWindowsWarning(UserWarning):
    """Windows in which features are missing were left out."""
