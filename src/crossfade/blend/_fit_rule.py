"""The one way from a person's windows and a law to a rule, and the table of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.blend._convex import convex
from crossfade.blend._fisher import fisher
from crossfade.blend._hierarchical import hierarchical
from crossfade.blend._posterior import posterior
from crossfade.blend._rule import Newcomer, Rule
from crossfade.exceptions import NoDirectionError
from crossfade.fisher import ClassMoments
from crossfade.prior import Law

#: What each kind of blend makes of a newcomer and a law.
KINDS: dict[str, Callable[..., Rule]] = {
    "fisher": fisher,
    "convex": convex,
    "posterior": posterior,
    "hierarchical": hierarchical,
}


def fit_rule(
    moments: ClassMoments,
    law: Law | None,
    kind: str = "hierarchical",
    *,
    unlabelled: Array | None = None,
    consecutive: bool = True,
    class_prior: float = 0.5,
    classes: NDArray[Any] | None = None,
    rehearsal: bool = False,
    **options: Any,
) -> Rule:
    """Rule of a person, or of a batch of people.

    Parameters
    ----------
    moments : ClassMoments
        Moments of the labelled windows in the user's units, with the classes in the order of the
        law; classes may have none. Leading axes are a batch.
    law : Law or None
        What is known of a new person: one law, or one for each of the batch. None is the person
        alone, whatever the kind.
    kind : str, default="hierarchical"
        A key of `KINDS`.
    unlabelled : ndarray of shape (..., n_windows, n_features) or None, default=None
        Windows of the same person without a label.
    consecutive : bool, default=True
        Whether the labelled windows of a class follow each other in time.
    class_prior : float, default=0.5
        Probability of the second of two classes among new windows.
    classes : ndarray of shape (n_classes,) or None, default=None
        Labels of the classes; None counts them from 0.
    rehearsal : bool, default=False
        Leave the records of the law aside, as a rehearsal does that makes them.
    **options : optional
        What only this kind takes. Rehearsals use none, so that with any the forecast is theory's.

    Returns
    -------
    Rule
        The rule.
    """
    if law is None:
        # A person alone has nothing to blend with.
        kind, options = "fisher", {}
    record = None if law is None or rehearsal or options else law.records.get(kind)
    names = np.arange(moments.counts.shape[-1]) if classes is None else classes
    newcomer = Newcomer(moments, unlabelled, consecutive, class_prior, names, record)
    rule = KINDS[kind](newcomer, law, **options)
    if not rehearsal and not rule.coef.any((-2, -1)).all():
        raise NoDirectionError(
            "There is no direction between the classes: the windows do not differ, and the crowd "
            "knows no difference or cancels theirs. Check the features, or give more windows."
        )
    return rule
