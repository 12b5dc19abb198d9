"""Calibration of one person while they sit there, without a page or a stream.

Labelled windows are kept as their moments, where a window of age t has the weight
:math:`2^{-t / \\text{forget}}`. The rule follows from these and the prior, so a new window costs
the same however many came before.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import check_integer, check_number
from crossfade.blend import (
    Goal,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    advise,
    expected_gains,
)
from crossfade.exceptions import PriorMismatchError
from crossfade.live._drift import find_drift
from crossfade.live._folder import begin, check_prior, check_recipe, names_of, read
from crossfade.live._journal import Journal
from crossfade.live._records import LiveState, LiveWindow, Prediction, fields_of, window_of
from crossfade.live._sums import Sums
from crossfade.prior import MulticlassPrior, TaskPrior
from crossfade.tasks import Recipe, Task

if TYPE_CHECKING:
    from crossfade.signals import RawWindows

#: Probability of the interval of a state.
_LEVEL = 0.9
_TORN = "The last line of the journal was incomplete and never acknowledged; it was dropped."
#: What `undo` restores of a window that was new.
_NEW = object()


class LiveCalibration:
    """Calibrate a new person window by window, starting without a label.

    Parameters
    ----------
    prior : TaskPrior or MulticlassPrior
        What the crowd knows, with its classes. With class means the rule is that of
        :class:`HierarchicalBlendClassifier` and predicts at once; otherwise it is that of
        :class:`PosteriorBlendClassifier`, which needs a label of each class.
    recipe : Recipe or None, default=None
        How features are made of raw windows; None is the prior's. Only raw windows need it.
    folder : path-like or None, default=None
        Where to keep the session: a new or an empty folder. Every window is on disk there before
        :meth:`add` returns. None keeps the session in memory.
    forget : float or None, default=None
        Half-life in windows: a window that is so many windows old counts half. What is left of a
        class counts as one window at least. None counts all windows alike.
    want : float or None, default=None
        Accuracy that is enough.
    certainty : float, default=0.9
        Probability with which `want` must be reached.
    least_gain : float, default=0.01
        Advise to stop when the next `ahead` windows are expected to gain less accuracy than this.
    ahead : int, default=5
        How many windows to think ahead.

    See Also
    --------
    HierarchicalBlendClassifier : The rule itself, for windows that are all there.

    Examples
    --------
    >>> from crossfade import LiveCalibration, TaskPrior, load_mental_math
    >>> people = load_mental_math()
    >>> newcomer, others = people[0], people[1:]
    >>> live = LiveCalibration(TaskPrior.from_tasks(others))
    >>> live.predict(newcomer.X[0]).label
    'rest'
    >>> live.add(newcomer.X[0], "rest")
    0
    >>> live.add(newcomer.X[-1])
    1
    >>> live.label(1, "arithmetic")
    >>> live.state().counts
    {'rest': 1, 'arithmetic': 1}
    """

    def __init__(
        self,
        prior: TaskPrior | MulticlassPrior,
        recipe: Recipe | None = None,
        folder: str | os.PathLike[str] | None = None,
        *,
        forget: float | None = None,
        want: float | None = None,
        certainty: float = 0.9,
        least_gain: float = 0.01,
        ahead: int = 5,
    ) -> None:
        self.prior = check_prior(prior)
        self.recipe = check_recipe(recipe, self.prior)
        self.folder = None if folder is None else Path(folder)
        self.forget = None if forget is None else check_number("forget", forget, 1.0, 1e9)
        self.goal = Goal(
            None if want is None else check_number("want", want, 0.0, 1.0),
            check_number("certainty", certainty, 0.0, 1.0),
            check_number("least_gain", least_gain, 0.0, 1.0),
            check_integer("ahead", ahead, 1, 1000),
        )
        self.classes: tuple[Any, ...] = tuple(np.sort(np.array(self.prior.classes)).tolist())
        self.class_names = names_of(self.prior, self.classes)
        self._windows: list[LiveWindow] = []
        # Places of windows that were added or labelled, and their labels before, or _NEW.
        self._actions: list[tuple[int, Any]] = []
        self._empty = self._sums = Sums(self.prior, self.classes, self.forget)
        # The rule and its notes, once they are asked for.
        self._known: tuple[Any, tuple[str, ...]] | None = None
        # Sums with the windows that were predicted since the last one was learnt.
        self._later: Sums | None = None
        self._stream: RawWindows | None = None
        self._torn = False
        self._journal: Journal | None = None
        if self.folder is not None:
            self._journal = begin(self.folder, self.prior, self.recipe, self.forget, self.goal)

    # -- windows and labels -----------------------------------------------------------------

    @property
    def windows(self) -> tuple[LiveWindow, ...]:
        """All windows so far."""
        return tuple(self._windows)

    def add(
        self,
        window: ArrayLike | None,
        label: Any = None,
        usable: bool = True,
        start: float | None = None,
        note: str | None = None,
    ) -> int:
        """Add a window; it is on disk when this returns.

        A window out of all proportion to the crowd, as in other units, is refused with
        :exc:`~crossfade.exceptions.PriorMismatchError` and not kept: a feature is ten deviations
        or more from the crowd's mean, and would be as far for one window in 10,000. This needs a
        prior with the class means of three people or more.

        Parameters
        ----------
        window : array-like of shape (n_features,) or (n_channels, n_samples), or None
            Its features, or the raw window of the recipe; None for one that cannot be used. A raw
            window whose `start` is the end of the last one continues its filter; any other raw
            window is filtered as after a gap.
        label : object or None, default=None
            Its class, by the prior's value or name; None without a label.
        usable : bool, default=True
            False keeps it on record and leaves it out.
        start : float or None, default=None
            When it began, in seconds.
        note : str or None, default=None
            A remark, such as why it is left out.

        Returns
        -------
        int
            Its place, by which it can be labelled later.
        """
        if not isinstance(usable, (bool, np.bool_)):
            raise TypeError(f"usable must be True or False; got {usable!r}.")
        features, stream = self._features(window, bool(usable), start)
        one = LiveWindow(
            features,
            None if label is None else self._class_of(label),
            bool(usable),
            None if start is None else check_number("start", start, -1e18, 1e18),
            None if note is None else str(note),
        )
        place = len(self._windows)
        self._put(place, one, {"do": "add", **fields_of(one)})
        self._stream = stream
        return place

    def label(self, i: int, label: Any) -> None:
        """Give a window a label, or another one.

        Parameters
        ----------
        i : int
            Its place, as :meth:`add` returned it.
        label : object or None
            Its class, by the prior's value or name; None takes the label away.
        """
        n = len(self._windows)
        if isinstance(i, bool) or int(i) != i or not 0 <= i < n:
            raise IndexError(f"There is no window {i!r}: the session has {n}, counted from 0.")
        place, value = int(i), None if label is None else self._class_of(label)
        one = replace(self._windows[place], label=value)
        self._put(place, one, {"do": "label", "window": place, "label": value})

    def undo(self) -> str:
        """Take back the last window or label that was not taken back yet.

        Returns
        -------
        str
            What was taken back, "window" or "label".
        """
        if not self._actions:
            raise ValueError("There is nothing to take back: no window was added.")
        self._write({"do": "undo"})
        what = self._take_back()
        self._sums = self._empty.then(self._windows)
        self._known = self._later = None
        return what

    # -- what is known ----------------------------------------------------------------------

    def state(self) -> LiveState:
        """What is known of the person so far, and whether to go on.

        Returns
        -------
        LiveState
            Forecast, gains and advice.
        """
        rule, notes = self._rule()
        sums = self._sums
        counts = sums.counts
        if self._torn:
            notes = (*notes, _TORN)
        with warnings.catch_warnings():
            # What the forecast lacks is among the notes.
            warnings.simplefilter("ignore")
            fit = None if rule is None else rule._fit
            gains = expected_gains(fit, counts, self.class_names, self.goal.ahead)
            advice = advise(fit, counts, gains, self.goal)
            alpha, accuracy, lower, upper = 0.0, math.nan, math.nan, math.nan
            if rule is not None:
                alpha, accuracy = float(rule.alpha_), rule.expected_accuracy_
                lower, upper = rule.expected_accuracy_interval(_LEVEL)
        return LiveState(
            dict(zip(self.class_names, counts.astype(int).tolist(), strict=True)),
            alpha,
            accuracy,
            lower,
            upper,
            gains,
            advice,
            len(self._windows),
            sums.n_used - int(counts.sum()),
            len(self._windows) - sums.n_used,
            self._drift(sums),
            notes,
        )

    def model(self) -> HierarchicalBlendClassifier | PosteriorBlendClassifier:
        """The rule for this person, as an estimator of its own.

        It has the names of the prior's features and expects windows as a data frame with these
        columns.

        Returns
        -------
        HierarchicalBlendClassifier or PosteriorBlendClassifier
            Fitted to all windows that count.
        """
        rule = self._ready()
        copy: Any = object.__new__(type(rule))
        copy.__dict__.update(rule.__dict__)
        if self.prior.feature_names is not None:
            # As after a fit to a data frame: a card and a device name them, in their order.
            copy.feature_names_in_ = np.array(self.prior.feature_names, dtype=object)
            copy.__dict__.pop("_fresh", None)
        made: HierarchicalBlendClassifier | PosteriorBlendClassifier = copy
        return made

    def predict(self, window: ArrayLike) -> Prediction:
        """Class of a window, which is not added.

        Parameters
        ----------
        window : array-like of shape (n_features,) or (n_channels, n_samples)
            Its features, or the raw window of the recipe, which is taken to follow the last one.

        Returns
        -------
        Prediction
            Name of the class, and probabilities.
        """
        follows = None if self._stream is None else self._stream.next
        features: Any = self._features(window, True, follows)[0]
        probabilities = self._ready().predict_proba(features[None, :])[0].tolist()
        best = int(np.argmax(probabilities))
        return Prediction(
            self.class_names[best],
            probabilities[best],
            dict(zip(self.class_names, probabilities, strict=True)),
        )

    def task(self) -> Task:
        """Labelled windows of this session, for :meth:`TaskPrior.for_person`.

        Returns
        -------
        Task
            The windows that count and have a label, in their order.

        Examples
        --------
        >>> from crossfade import LiveCalibration, TaskPrior, load_mental_math
        >>> people = load_mental_math()
        >>> prior = TaskPrior.from_tasks(people[1:], replay=False)
        >>> yesterday = LiveCalibration(prior)
        >>> for i in (0, 1, -2, -1):
        ...     _ = yesterday.add(people[0].X[i], people[0].y[i])
        >>> today = LiveCalibration(prior.for_person(yesterday.task()))
        >>> today.state().counts
        {'rest': 0, 'arithmetic': 0}
        """
        used = [one for one in self._windows if one.usable and one.label is not None]
        if not used:
            raise ValueError("The session has no labelled window that counts. Leave it out.")
        return Task(
            np.array([one.features for one in used]),
            np.array([one.label for one in used]),
            name=None if self.folder is None else self.folder.name or None,
            feature_names=self.prior.feature_names,
            recipe=self.recipe,
        )

    # -- the session's folder ---------------------------------------------------------------

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Continue a session that was kept in a folder.

        Parameters
        ----------
        folder : str or path-like
            Its folder.

        Returns
        -------
        LiveCalibration
            The session, with every window and label that was acknowledged.
        """
        path = Path(folder)
        prior, recipe, options, journal = read(path)
        live = cls(prior, recipe, **options)
        for action in journal.actions:
            if action["do"] == "add":
                live._record(len(live._windows), window_of(action))
            elif action["do"] == "label":
                one = live._windows[action["window"]]
                live._record(action["window"], replace(one, label=action["label"]))
            else:
                live._take_back()
        live._sums = live._empty.then(live._windows)
        live.folder, live._journal, live._torn = path, journal, journal.torn
        return live

    def close(self) -> None:
        """Let others open the session's folder; what is in memory can still be asked."""
        if self._journal is not None:
            self._journal.close()

    def _past(self, most: int) -> Iterator[LiveState]:
        """States after some of the labelled windows, `most` at most, as these are labelled now."""
        past = LiveCalibration(self.prior, self.recipe, forget=self.forget, **self.goal._asdict())
        yield past.state()
        counts = [one.usable and one.label is not None for one in self._windows]
        shown = np.flatnonzero(counts)
        if len(shown) > most:
            shown = shown[np.linspace(0, len(shown) - 1, most).astype(int)]
        for place, one in enumerate(self._windows):
            past._sums, past._known = past._sums.then([one]), None
            if place in shown:
                yield past.state()

    # -- from windows to a rule -------------------------------------------------------------

    def _put(self, place: int, one: LiveWindow, action: dict[str, Any]) -> None:
        """Put a window in its place, once a rule follows from it and it is on disk."""
        sums = self._sums_with(place, one)
        known = sums.tried_rule() if one.usable else self._known
        self._write(action)
        self._record(place, one)
        self._sums, self._known, self._later = sums, known, None

    def _sums_with(self, place: int, one: LiveWindow) -> Sums:
        """Sums if this window were in its place; another label counts all windows again."""
        if place == len(self._windows):
            return self._sums.then([one])
        return self._empty.then([*self._windows[:place], one, *self._windows[place + 1 :]])

    def _record(self, place: int, one: LiveWindow) -> None:
        """Put a window on the list, or replace one on it."""
        if place == len(self._windows):
            self._actions.append((place, _NEW))
            self._windows.append(one)
        else:
            self._actions.append((place, self._windows[place].label))
            self._windows[place] = one

    def _take_back(self) -> str:
        """Take back the last action: "window" or "label"."""
        place, before = self._actions.pop()
        if before is _NEW:
            self._windows.pop()
            return "window"
        self._windows[place] = replace(self._windows[place], label=before)
        return "label"

    def _write(self, action: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.write(action)

    def _rule(self) -> tuple[Any, tuple[str, ...]]:
        """The rule, or None where there is none yet, and its notes."""
        if self._known is None:
            self._known = self._sums.rule()
        return self._known

    def _ready(self) -> Any:
        """The rule, where there is one."""
        rule = self._rule()[0]
        if rule is None:
            counts = zip(self.class_names, self._sums.counts, strict=True)
            missing = [name for name, count in counts if not count]
            raise ValueError(
                "There is no rule yet: the prior holds no class means, and no window of "
                f"{' and '.join(missing)} has a label. Label at least 1 window of each class."
            )
        return rule

    def _watch(self, window: ArrayLike) -> str | None:
        """Look for drift with a window that was predicted and is not learnt from."""
        features = np.asarray(window, dtype=np.float64)
        self._later = (self._later or self._sums).then([LiveWindow(features)])
        return self._drift(self._later)

    def _drift(self, sums: Sums) -> str | None:
        """What has changed in the last of these windows."""
        rule = self._rule()[0]
        if rule is None:
            return None
        return find_drift(rule, sums.recent, sums.places, sums.n_used)

    def _features(
        self, window: ArrayLike | None, usable: bool, start: float | None
    ) -> tuple[Array | None, RawWindows | None]:
        """Features (d,) of a window, or of a raw one, and what its stream then remembers."""
        stream = self._stream
        if window is None:
            if usable:
                raise ValueError("A window without features cannot count: pass usable=False.")
            return None, stream
        found = np.array(window, dtype=np.float64)
        if found.ndim == 2:
            if self.recipe is None:
                raise ValueError(
                    f"A raw window of shape {found.shape} needs the recipe that makes its features."
                    " Pass a recipe, or a list of features."
                )
            # Signals load when they are used.
            from crossfade.signals import RawWindows

            stream, found = (stream or RawWindows(self.recipe)).then(found, start)
        if found.shape != (self.prior.n_features,):
            raise PriorMismatchError(
                f"A window must have the prior's {self.prior.n_features} features; got an array "
                f"of shape {found.shape}."
            )
        if usable and not np.isfinite(found).all():
            raise ValueError(
                "The features of a window are NaN or infinite. Leave it out with usable=False, or "
                "check the signal."
            )
        found.setflags(write=False)
        return found, stream

    def _class_of(self, label: Any) -> Any:
        """The prior's label for a class value or name."""
        value = label.item() if isinstance(label, np.generic) else label
        if isinstance(value, str) and value in self.class_names:
            return self.classes[self.class_names.index(value)]
        if not isinstance(value, bool) and value in self.classes:
            return self.classes[self.classes.index(value)]
        raise ValueError(
            f"There is no class {label!r}: the classes are {', '.join(self.class_names)}."
        )
