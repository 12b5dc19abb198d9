r"""Is it worth it? Each participant is left out in turn, labels a few windows, and is evaluated.

The paper's protocol (its section on applications). For a target with :math:`N_k` windows of class
k, a budget labels :math:`n = \lceil p \min_k N_k \rceil` windows of each class, a run with a
random start; all others are for testing, and 100 such splits are drawn. Budgets may also be whole
numbers of each class, unequal ones such as (24, 2), or no label at all. The sources are all tasks
of other groups, so that nobody's other session helps them. A method is scored by its balanced
accuracy,

.. math:: \frac{1}{K} \sum_k P(\text{recognised} \mid \text{class } k),

averaged over splits, then over tasks.

Names: :class:`CalibrationStudy` runs methods on all targets, budgets and splits,
:class:`StudyResult` holds the rows and says how many windows a new person needs,
:class:`CalibrationSplit` hands the same splits to scikit-learn. :mod:`crossfade.study.statistics`
compares methods task by task, and :func:`verdict` says it in a sentence. Each method is one record
in ``_methods.py``, and so is each kind of blend of :mod:`crossfade.blend`.

Where we depart from the paper: methods are compared by Wilcoxon's signed-rank test on pairs, with
Holm's correction for the budgets, where it names the rank-sum test; intervals are over participants
and not over splits; scikit-learn's shrinkage LDA, the usual choice, is a rival; the oracle, whose
alpha is the best on the test windows, is not a method here, since nobody can use it; forecasts are
judged one calibration at a time, beside the mean accuracy of the other people.
"""

from crossfade.study._methods import METHODS as METHODS
from crossfade.study._needed import NEEDED as NEEDED
from crossfade.study._needed import windows_needed as windows_needed
from crossfade.study._result import StudyResult
from crossfade.study._splits import CalibrationSplit
from crossfade.study._splits import budget_of as budget_of
from crossfade.study._splits import budget_text as budget_text
from crossfade.study._splits import is_unequal as is_unequal
from crossfade.study._study import CalibrationStudy
from crossfade.study._verdict import rivals as rivals
from crossfade.study._verdict import sentences as sentences
from crossfade.study._verdict import verdict

__all__ = [
    "CalibrationSplit",
    "CalibrationStudy",
    "StudyResult",
    "verdict",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
