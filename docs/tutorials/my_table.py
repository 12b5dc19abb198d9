r"""
My table
========

*You have* a table with one row for each window of each person, features and a label, as CSV,
Parquet or a data frame. *You will have* the number of labelled windows that a new person needs
until the classifier is good enough for them, a figure of it, and a report to share. It takes a
few minutes.

What you need: ``pip install ".[plots]"`` in a copy of the source, and people with windows of two
classes each; ten people are a fair start.
"""

# %%
# The table
# ---------
#
# Use your own here. This is the EEG study that ships with Crossfade, 36 people at
# rest and at mental arithmetic, with columns as a lab would name them: who, which condition, when,
# a trial counter, and nine features.

import tempfile
from pathlib import Path

import crossfade as cf
from crossfade.report import write_report

folder = Path(tempfile.mkdtemp())  # take a folder of your own
frame = cf.load_mental_math(features="log-powers").to_frame()
frame = frame.rename(columns={"task": "subject", "label": "condition", "start": "onset"})
frame.insert(2, "trial", frame.groupby("subject").cumcount())
frame.to_csv(folder / "ours.csv", index=False)
frame.iloc[:3, :7]

# %%
# Check it first
# --------------
#
# Say which column is which, and drop columns that are not features. If you forget one, the reader
# does not guess: here the trial counter is still among the features, and would have told the
# conditions apart by itself.

columns = {"task": "subject", "label": "condition", "start": "onset"}
try:
    cf.read_tasks(folder / "ours.csv", **columns)
except ValueError as error:
    print(error)

# %%
# Without it the table is read. ``crossfade tasks check ours.csv --task subject --label condition
# --drop trial`` does the same in a terminal, and lists everything that it finds odd.

tasks = cf.read_tasks(folder / "ours.csv", **columns, drop=["trial"])
tasks = cf.TaskSet(tasks, class_names={0: "rest", 1: "arithmetic"})
print(tasks)
print(tasks[0], tasks.feature_names)

# %%
# How many windows does a new person need?
# ----------------------------------------
#
# A study leaves each person out in turn. The others are the crowd; a few consecutive windows of
# the person left out are labelled, and the rest are for testing. It compares three methods: the
# blend that Crossfade recommends, the paper's blend, and the usual alternative, scikit-learn's LDA
# with shrinkage.
#
# Twenty calibrations of each person at each budget take seconds; use 100 for numbers that you
# publish.

study = cf.CalibrationStudy(
    tasks,
    methods=["hierarchical", "paper", "lda"],
    budgets=[0, 1, 2, 4, 8, 16],
    n_splits=20,
    random_state=0,
)
result = study.run()
accuracy = cf.plots.accuracy_by_budget(result.rows)

# %%
# Read the figure from the left. Before the first label only the crowd can answer. With one or
# two windows of each class the blend is far ahead of LDA, which has to learn everything from this
# one person. The more labels there are, the less the crowd matters; far to the right the lines
# meet.
#
# The number for those who plan the recordings: after how many windows do eight people in ten reach
# an accuracy of 0.7?

needed = result.needed(accuracy=0.7, share=0.8)
needed[["method", "windows", "low", "high", "bound", "reached"]].round(2)

# %%
# ``windows`` is the number of each class, ``low`` and ``high`` its 95 % interval over people;
# ``bound`` is ``>`` where not even the largest budget is enough, and ``reached`` is the share of
# people who get there at all. Some never do: these nine features do not separate their classes
# well enough, and no method changes that.

who = cf.plots.needed(result.rows, accuracy=0.7, share=0.8)

# %%
# The report
# ----------
#
# One page has everything: the answer, tables, figures, each person, and how true the forecasts
# were. It is a single file, so you can send it by mail.

written = write_report(result, tasks, folder / "study", reach=0.7, share=0.8)
print(*sorted(path.name for path in written), sep="\n")

# %%
# In a terminal the same is
# ``crossfade study ours.csv --task subject --label condition --drop trial --reach 0.7``, which
# shows its progress, and resumes if it was stopped.
#
# If it does not work
# -------------------
#
# A column is refused
#     Drop it, or name the features with ``columns=["F*"]``.
#
# "rows dropped: a feature is missing"
#     Look at the counts by feature: one dead channel empties a table.
#
# All methods at 0.5
#     Are labels and windows still in line? Plot one feature over time, by label.
#
# The blend is no better than LDA
#     Enough labels, or people who differ too much: :doc:`/which-blend`.
#
# The blend is worse than LDA
#     The features of some people are in other units, or centred: :doc:`/tables`.
#
# Next: :doc:`share what you learnt with another lab </sharing>`, or :doc:`calibrate a person live
# <my_live_session>`.
