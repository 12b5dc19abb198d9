r"""
My recordings
=============

*You have* a folder of EEG recordings: EDF, BDF, XDF, MATLAB, or another format that MNE reads.
*You will have* a table of features, a file with what your people have in common (a *prior*), and
a classifier for a new person who gave you 40 seconds of labelled signal, with a forecast of how
accurate it will be. Six commands; a minute for a dozen people.

What you need: ``pip install ".[eeg,plots,tables]"`` in a copy of the source, and ``edfio`` to run
this page itself.

Everything below happens in a terminal. This page writes its own recordings first, so that it can
run anywhere; if you have your own, go to `Recordings to features`_.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import edfio
import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import welch

import crossfade as cf
from crossfade.signals.recordings import open_recording
from crossfade.study import StudyResult

plt.style.use("crossfade.plots.crossfade")
folder = Path(tempfile.mkdtemp())  # take a folder of your own

# %%
# Recordings to try it with
# -------------------------
#
# Twelve simulated people at rest and at work in turn, half a minute each, as annotated EDF files.
# At work the alpha rhythm over the back of the head is weaker and theta over the front stronger;
# how much so, and how strong each rhythm is, differs from person to person. One more person comes
# in later: their labels end after 40 seconds.

SFREQ, CHANNELS = 128, ("Fz", "Cz", "Pz", "Oz")
BACK = np.array([[0.2], [0.4], [1.0], [1.3]])  # where alpha is strong; theta has the reverse
rng = np.random.default_rng(0)


def rhythm(n_samples, centre):
    """Noise about a frequency, of unit variance, alike in all channels."""
    spectrum = rng.normal(size=(n_samples // 2 + 1, 2)) @ [1.0, 1.0j]
    frequency = np.fft.rfftfreq(n_samples, 1 / SFREQ)
    signal = np.fft.irfft(spectrum * np.exp(-0.5 * (frequency - centre) ** 2), n_samples)
    return signal / signal.std()


def write_person(name, blocks):
    """One EDF file; each block is (seconds, what the person does, whether that is annotated)."""
    alpha, theta = rng.lognormal(np.log(9), 0.3), rng.lognormal(np.log(5), 0.3)
    less, more = rng.normal(0.75, 0.12), rng.normal(1.25, 0.15)
    pieces, notes, start = [], [], 0.0
    for seconds, state, known in blocks:
        n = int(seconds * SFREQ)
        work = state == "work"
        piece = alpha * (less if work else 1.0) * BACK * rhythm(n, 10.0)
        piece = piece + theta * (more if work else 1.0) * (1.4 - BACK) * rhythm(n, 6.0)
        pieces.append(piece + rng.normal(scale=8.0, size=(len(CHANNELS), n)))
        notes += [edfio.EdfAnnotation(start, seconds, state)] if known else []
        start += seconds
    rows = zip(np.hstack(pieces), CHANNELS, strict=True)
    signals = [edfio.EdfSignal(x, SFREQ, label=c, physical_dimension="uV") for x, c in rows]
    edfio.Edf(signals, annotations=notes).write(folder / f"{name}.edf")


(folder / "lab").mkdir()
for person in range(12):
    blocks = [(30, state, True) for _ in range(2) for state in ("rest", "work")]
    write_person(f"lab/P{person:02d}", blocks)
first = [(20, "rest", True), (20, "work", True)]
write_person("newcomer", [*first, (60, "rest", False), (60, "work", False)])

# %%
# Look at one first, as you would with your own: is there a rhythm at all, and does it differ
# between the classes?

recording = open_recording(folder / "lab" / "P00.edf")
[signal] = recording.read(["Oz"])
figure, ax = plt.subplots(figsize=(4.2, 2.4))
for note in recording.annotations[:2]:
    start, stop = (int(SFREQ * t) for t in (note.start, note.start + note.duration))
    frequency, power = welch(signal[start:stop], SFREQ, nperseg=4 * SFREQ)
    ax.semilogy(frequency, power, label=note.text)
ax.set(xlim=(2, 30), xlabel="frequency (Hz)", ylabel="power at Oz (µV²/Hz)")
ax.legend()

# %%
# Recordings to features
# ----------------------
#
# This function stands for your terminal: it runs a command in the folder, and shows what the
# command says.


def terminal(command):
    """Run a command as it would be typed."""
    start = [sys.executable, "-c", "from crossfade.cli import main; main(prog_name='crossfade')"]
    words = shlex.split(command)
    done = subprocess.run(
        start + words[1:],
        cwd=folder,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    print(f"$ {command}\n{done.stdout}{done.stderr if done.returncode else ''}")


# %%
# Log powers in three bands of each channel, for windows of 2.5 s. ``--pattern`` finds the name of
# the person in the name of the file, ``--label-from annotations`` the labels in the annotations;
# they may also be in file names or in a separate table. ``--causal`` uses only past samples: you
# need it to compute the same features live.

terminal(
    "crossfade features eeg lab -o tasks.parquet --label-from annotations"
    r" --pattern '(?P<task>P\d+)' --class rest --class work --features log-powers --causal --jobs 1"
)

# %%
# The command names each file that it cannot use, with the reason, and reads the others. Check the
# result before you go on: are all people there, with windows of both classes?

terminal("crossfade tasks show tasks.parquet")

# %%
# Is it worth it?
# ---------------
#
# Leave each person out in turn, as in :doc:`my_table`: how accurate would each method have been?

terminal(
    "crossfade study tasks.parquet -o study"
    " --methods hierarchical,lda --budgets 0,1,2,4,8 --splits 20 --jobs 1"
)

# %%
# The folder of the study has everything: tables, figures, and ``report.html``, a single page. In
# Python:

result = StudyResult.load(folder / "study")
accuracy = cf.plots.accuracy_by_budget(result.rows)

# %%
# A new person
# ------------
#
# The prior holds sums over the twelve people and nobody's windows. It is the one file that a new
# person, or another lab, needs.

terminal("crossfade prior build tasks.parquet -o prior.npz")

# %%
# The newcomer's 40 labelled seconds, by the same recipe, and the classifier with its forecast:

terminal(
    "crossfade features eeg newcomer.edf -o few.parquet --label-from annotations"
    " --class rest --class work --features log-powers --causal --jobs 1"
)
terminal("crossfade calibrate --prior prior.npz few.parquet -o model.json")

# %%
# The last lines say what more labels would bring. ``crossfade predict model.json new.parquet``
# labels new windows, and :doc:`my_device` puts the model onto a device.
#
# If it does not work
# -------------------
#
# "Could not be used", and a file
#     The message gives the reason; the other files were used.
#
# "There is no channel ..."
#     The names that the file has are listed: give them with ``--channels``.
#
# A person is missing
#     Does the pattern match the file's name? Are there annotations of both classes?
#
# Accuracy near 1.0 that you do not believe
#     Are the classes separate recordings? Then amplitude may tell them apart: use ``--features
#     shares``, and see the caution in :doc:`/tables`.
#
# "recipes differ"
#     Two tables were made with different options: make them again with the same ones.
