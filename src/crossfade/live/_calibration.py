"""Calibration of one person, window by window, without a page or a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import LARGEST, as_floats, check_finite, check_number
from crossfade.blend import Rule, advise
from crossfade.classifiers import about_of
from crossfade.crowd import TaskPrior
from crossfade.exceptions import PriorMismatchError
from crossfade.live._evidence import Evidence, misfit_of
from crossfade.live._folder import begin, check_recipe, names_of, read
from crossfade.live._journal import Journal
from crossfade.live._records import LiveState, LiveWindow, Prediction, fields_of, window_of
from crossfade.signals import RawWindows
from crossfade.tasks import Recipe, Task

#: Probability of the interval of a state.
_LEVEL = 0.9
_TORN = "The last line of the journal was incomplete and never acknowledged; it was dropped."
_CONTRADICTS = (
    "The labelled windows contradict the crowd: their classes lie the other way round. Check that "
    "no labels were swapped."
)
#: Stands for the label of a window before it was added.
_NEW = object()


class LiveCalibration:
    """Calibrate a new person window by window, starting without a label.

    Parameters
    ----------
    prior : TaskPrior
        What the crowd knows: classes and class means.
    recipe : Recipe or None, default=None
        How features are made of raw windows; None is the prior's. Only raw windows need it.
    folder : path-like or None, default=None
        Where to keep the session: a new or an empty folder. Every window is on disk there before
        :meth:`add` returns. None keeps the session in memory.
    want : float or None, default=None
        Accuracy that is enough: the advice is to stop once it is reached with probability 0.9.

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
        prior: TaskPrior,
        recipe: Recipe | None = None,
        folder: str | os.PathLike[str] | None = None,
        *,
        want: float | None = None,
    ) -> None:
        self.prior = prior
        self.class_names = names_of(prior)
        self.classes: tuple[Any, ...] = prior.classes or ()
        self.recipe = check_recipe(recipe, prior)
        self.folder = None if folder is None else Path(folder)
        self.want = None if want is None else check_number("want", want, 0.0, 1.0)
        self._windows: list[LiveWindow] = []
        # Places of windows that were added or labelled, and their labels before, or _NEW.
        self._actions: list[tuple[int, Any]] = []
        self._nothing = self._evidence = Evidence.empty(self.classes, self.prior.n_features)
        # The rule, once it is asked for.
        self._known: Rule | None = None
        self._stream: RawWindows | None = None
        self._journal: Journal | None = None
        if self.folder is not None:
            self._journal = begin(self.folder, self.prior, self.recipe, self.want)

    # -- windows and labels -----------------------------------------------------------------

    @property
    def windows(self) -> tuple[LiveWindow, ...]:
        """All windows so far."""
        return tuple(self._windows)

    def add(self, window: ArrayLike, label: Any = None, *, start: float | None = None) -> int:
        """Add a window; it is on disk when this returns.

        A window out of all proportion to the crowd, as in other units, is refused with
        :exc:`~crossfade.exceptions.PriorMismatchError` and not kept: a feature is ten deviations
        or more from the crowd's mean, and would be as far for one window in 10,000. This needs a
        prior with the class means of three people or more.

        Parameters
        ----------
        window : array-like of shape (n_features,) or (n_channels, n_samples)
            Its features, or the raw window of the recipe. A raw window whose `start` is the end of
            the last one continues its filter; any other raw window is filtered as after a gap.
        label : object or None, default=None
            Its class, by the prior's value or name; None without a label.
        start : float or None, default=None
            When it began, in seconds.

        Returns
        -------
        int
            Its place, by which it can be labelled later.
        """
        features, stream = self._features(window, start)
        if misfit := misfit_of(features, self.prior):
            raise PriorMismatchError(misfit)
        place = self._append(features, label, start)
        self._stream = stream
        return place

    def leave_out(self, reason: str, label: Any = None, *, start: float | None = None) -> int:
        """Keep on record that a window was left out.

        Parameters
        ----------
        reason : str
            Why, such as "flat channel Fz".
        label : object or None, default=None
            Its class, by the prior's value or name; None without a label.
        start : float or None, default=None
            When it began, in seconds.

        Returns
        -------
        int
            Its place.
        """
        return self._append(None, label, start, str(reason))

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
        place, value = int(i), self._class_of(label)
        self._write({"do": "label", "window": place, "label": value})
        self._relabel(place, value)
        self._count_again()

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
        self._count_again()
        return what

    # -- what is known ----------------------------------------------------------------------

    def state(self) -> LiveState:
        """Forecast for the person, and advice whether to label more.

        Returns
        -------
        LiveState
            Forecast, gains and advice.
        """
        rule, n_windows = self._rule, len(self._windows)
        counts = dict(zip(self.class_names, rule.n_labelled.astype(int).tolist(), strict=True))
        n_used = sum(one.usable for one in self._windows)
        advice, gains = advise(rule, self.class_names, self.want)
        lower, upper = rule.interval(_LEVEL)
        return LiveState(
            counts,
            float(rule.alpha),
            float(rule.expected_accuracy),
            float(lower),
            float(upper),
            gains,
            advice,
            n_windows,
            n_used - sum(counts.values()),
            n_windows - n_used,
            tuple(self._remarks(rule)),
        )

    def _remarks(self, rule: Rule) -> Iterator[str]:
        """Remarks for the person at the screen."""
        if self._journal is not None and self._journal.torn:
            yield _TORN
        if rule.contradicts and rule.expected_accuracy < 0.5:
            yield _CONTRADICTS

    def model(self) -> Rule:
        """The rule for this person, made from all windows that count.

        Returns
        -------
        Rule
            It predicts, forecasts, and can be saved and exported.
        """
        about = about_of(self.prior, self._rule.classes, made_by=type(self).__name__)
        return replace(self._rule, about=about)

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
        features: Any = self._features(window, follows)[0]
        probabilities = self._rule.predict_proba(features[None, :])[0].tolist()
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
        >>> prior = TaskPrior.from_tasks(people[1:], rehearse=False)
        >>> yesterday = LiveCalibration(prior)
        >>> for i in (0, 1, -2, -1):
        ...     _ = yesterday.add(people[0].X[i], people[0].y[i])
        >>> today = LiveCalibration(prior.for_person(yesterday.task()))
        >>> today.state().counts
        {'rest': 0, 'arithmetic': 0}
        """
        used = [one for one in self._windows if one.usable and one.label is not None]
        if not used:
            raise ValueError("The session has no labelled window. Leave it out.")
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
        prior, recipe, want, journal = read(path)
        live = cls(prior, recipe, want=want)
        for action in journal.actions:
            if action["do"] == "add":
                live._record(window_of(action))
            elif action["do"] == "label":
                live._relabel(action["window"], action["label"])
            else:
                live._take_back()
        live._count_again()
        live.folder, live._journal = path, journal
        return live

    def close(self) -> None:
        """Close the session's folder, so that others can open it."""
        if self._journal is not None:
            self._journal.close()

    # -- windows and actions ----------------------------------------------------------------

    def _append(
        self, features: Array | None, label: Any, start: float | None, note: str | None = None
    ) -> int:
        """Add a window to the journal, then to the session; return its place."""
        begun = None if start is None else check_number("start", start, -1e18, 1e18)
        one = LiveWindow(features, self._class_of(label), begun, note)
        self._write({"do": "add", **fields_of(one)})
        self._record(one)
        self._count(one)
        return len(self._windows) - 1

    def _write(self, action: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.write(action)

    def _record(self, one: LiveWindow) -> None:
        self._actions.append((len(self._windows), _NEW))
        self._windows.append(one)

    def _relabel(self, place: int, label: Any) -> None:
        self._actions.append((place, self._windows[place].label))
        self._windows[place] = replace(self._windows[place], label=label)

    def _take_back(self) -> str:
        """Take back the last action: "window" or "label"."""
        place, before = self._actions.pop()
        if before is _NEW:
            self._windows.pop()
            return "window"
        self._windows[place] = replace(self._windows[place], label=before)
        return "label"

    # -- from windows to a rule -------------------------------------------------------------

    def _count(self, one: LiveWindow) -> None:
        """Add a new window to the evidence."""
        self._evidence, self._known = self._evidence.then([one]), None

    def _count_again(self) -> None:
        """Add all windows to the evidence, by their present labels."""
        self._evidence, self._known = self._nothing.then(self._windows), None

    @property
    def _rule(self) -> Rule:
        """The rule that follows from all windows."""
        if self._known is None:
            self._known = self._evidence.rule(self.prior.law)
        return self._known

    def _features(self, window: ArrayLike, start: float | None) -> tuple[Array, RawWindows | None]:
        """Features (d,) of a window, or of a raw one, and what its stream then remembers."""
        stream, found = self._stream, as_floats("window", window)
        if found.ndim == 2:
            if self.recipe is None:
                raise ValueError("A raw window needs a recipe. Pass one, or a list of features.")
            stream, found = (stream or RawWindows(self.recipe)).then(found, start)
        features = check_finite("window", found, 1, self.prior.n_features, LARGEST)
        features.setflags(write=False)
        return features, stream

    def _class_of(self, label: Any) -> Any:
        """The prior's label for a class value or name; None for None."""
        value = label.item() if isinstance(label, np.generic) else label
        if value is None:
            return None
        if isinstance(value, str) and value in self.class_names:
            return self.classes[self.class_names.index(value)]
        if not isinstance(value, bool) and value in self.classes:
            return self.classes[self.classes.index(value)]
        raise ValueError(
            f"There is no class {label!r}: the classes are {', '.join(self.class_names)}."
        )
