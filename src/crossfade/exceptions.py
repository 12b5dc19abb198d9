"""Errors and warnings that a caller may want to catch or to filter.

::

    ValueError
      PriorMismatchError      a prior of other features, units or classes
      NoDirectionError        classes that do not differ, or sources that cancel
    UserWarning
      CancellingSourcesWarning  the crowd's directions cancel, so that only the person's own is used
      ContradictionWarning      a person's labelled windows contradict the crowd
      MissingPartWarning        a prior lacks what a blend asks for, which goes on without it
      DroppedWindowsWarning     windows with missing features were left out
"""


class PriorMismatchError(ValueError):
    """A prior does not fit the windows, or another prior: other features, units or classes."""


class NoDirectionError(ValueError):
    """There is no direction: the classes do not differ, or the sources cancel out."""


class CancellingSourcesWarning(UserWarning):
    """The directions of the sources cancel out, so that only the person's own is used."""


class ContradictionWarning(UserWarning):
    """The labelled windows of a person contradict the crowd: its classes lie the other way."""


class MissingPartWarning(UserWarning):
    """A prior lacks a part that a blend asks for; the message says what is lost."""


class DroppedWindowsWarning(UserWarning):
    """Windows in which features are missing were left out."""
