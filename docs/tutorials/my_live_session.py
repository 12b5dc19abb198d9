r"""
My live session
===============

*You have* a prior of earlier people, and a new person who has just put the cap on. *You will
have* a classifier that improves with the labelled windows, a forecast of its accuracy from the
first minute on, and advice when more labels are not worth it. A session takes as long as the
recording; this page replays one in seconds.

What you need, in a copy of the source: ``pip install ".[plots]"`` for this page,
``pip install ".[live]"`` for the one in the browser and a stream of the Lab Streaming Layer.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score

import crossfade as cf

plt.style.use("crossfade.plots.crossfade")
folder = Path(tempfile.mkdtemp())  # take a folder of your own

# %%
# A crowd and a newcomer
# ----------------------
#
# Of the 36 people that ship with Crossfade, the first plays the newcomer; the prior knows the 35
# others and nothing of this one. The session asks for five windows of rest and five of arithmetic
# in turn, three times. All other windows are for the test: in a real session nobody has them.

people = cf.load_mental_math(features="log-powers")
newcomer, crowd = people[0], people[1:]
prior = cf.TaskPrior.from_tasks(crowd)

rest, work = (np.flatnonzero(newcomer.y == label) for label in (0, 1))
cues = np.concatenate([np.r_[rest[i : i + 5], work[i : i + 5]] for i in range(0, 15, 5)])
test = np.setdiff1d(np.arange(len(newcomer.y)), cues)
judged = pd.DataFrame(newcomer.X[test], columns=newcomer.feature_names)
print(f"{len(crowd)} people in the crowd, {len(cues)} windows to label, {len(test)} to test on")

# %%
# Before the first label
# ----------------------
#
# A session can predict at once, from the crowd alone, and reports how uncertain that is. It writes
# every window to its folder first, so a crash loses nothing: ``LiveCalibration.load(folder)``
# resumes the session.

live = cf.LiveCalibration(prior, folder=folder / "session", want=0.8)
state = live.state()
print(live.predict(newcomer.X[cues[0]]))
print(f"expect {state.accuracy:.2f}, 90 % interval {state.lower:.2f} to {state.upper:.2f}")
print(state.advice.reason)

# %%
# Window by window
# ----------------
#
# Add each window with the label of its cue. A window whose label comes later is added without one
# and labelled by ``live.label(place, label)``; ``live.undo()`` undoes a mistake.

states, found = [live.state()], []
for window in (None, *cues):
    if window is not None:
        live.add(newcomer.X[window], newcomer.y[window])
        states.append(live.state())
    answers = live.model().predict(judged)
    found.append(balanced_accuracy_score(newcomer.y[test], answers))

print(states[10].counts, states[10].advice.reason)

# %%
# The figure shows the forecast over the session, and the accuracy on windows that the session
# never saw. The band is the 90 % interval. It is wide, since one person's accuracy is uncertain.
# The strip at the bottom shows the cues: grey is rest, orange arithmetic.

n = np.arange(len(states))
stop = next((i for i, one in enumerate(states) if one.advice.stop), None)
figure, [top, bottom] = plt.subplots(2, 1, figsize=(5.4, 4.0), sharex=True, height_ratios=(3, 1))
band = [one.lower for one in states], [one.upper for one in states]
top.fill_between(n, *band, color="#0072b2", alpha=0.15, linewidth=0, label="90 % interval")
top.plot(n, [one.accuracy for one in states], color="#0072b2", label="forecast")
top.plot(n, found, "o", color="#d55e00", markersize=3, label="found on later windows")
top.axhline(0.5, color="grey", linestyle=":", linewidth=0.8)
for place, window in enumerate(cues, 1):
    colour = "#999999" if newcomer.y[window] == 0 else "#e69f00"
    top.axvspan(place - 0.5, place + 0.5, ymax=0.03, color=colour)
if stop is not None:
    top.axvline(stop, color="#009e73", linestyle="--")
    top.annotate("advice: stop", (stop, 0.47), xytext=(4, 0), textcoords="offset points")
top.set(ylabel="balanced accuracy", ylim=(0.4, 1.02))
top.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
bottom.plot(n, [one.alpha for one in states], color="#333333")
bottom.set(ylim=(0, 1), xlabel="labelled windows", ylabel="weight of\nthe person")

inside = [one.lower <= hit <= one.upper for one, hit in zip(states, found, strict=True)]
print(f"{np.mean(inside):.0%} of what was found lies within the band")

# %%
# When to stop
# ------------
#
# It advises stopping when the accuracy is at least ``want`` with probability 0.9, or when the next
# five windows are expected to gain less than one point of accuracy.

print("not yet" if stop is None else f"after {stop} windows: {states[stop].advice.reason}")

# %%
# Then take the model: the rule that follows from all windows so far.

model = live.model()
cf.save_model(model, folder / "model.json")
live.close()
print(cf.load_model(folder / "model.json"))

# %%
# On a page in the browser
# ------------------------
#
# The same with cues, countdown, signal and keys, for a recorded person or a stream of your own:
#
# ``crossfade live --demo``
#     Plays a person that ships with Crossfade; nothing else is needed.
#
# ``crossfade live --prior prior.npz --stream EEG``
#     Your amplifier, through the Lab Streaming Layer.
#
# ``crossfade live --prior prior.npz --replay p01.edf``
#     A recording, as if it came in now.
#
# .. image:: /images/live.png
#    :alt: The page of a live session: cue, countdown, signal, weight of the person, accuracy
#
# :doc:`/live` says what everything on the page means.
#
# If it does not work
# -------------------
#
# The interval stays wide
#     The accuracy of one person is hard to forecast. More people in the prior narrow it a little.
#
# The forecast falls while labels come in
#     This person is unlike the crowd. Keep labelling: the weight moves to their own data.
#
# Windows are left out
#     The page names channel and reason: look at the electrode.
#
# It never advises stopping
#     Is there a window of both classes? Is ``want`` above what the features allow?
#
# Next: :doc:`my_device`.
