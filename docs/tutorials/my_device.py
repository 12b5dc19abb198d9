r"""
My device
=========

*You have* a few labelled windows of a person, and a device that runs C, ONNX or only
arithmetic. *You will have* that person's classifier as one C header, one ONNX file and one JSON
file, compiled, run and compared with Python. It takes five minutes.

What you need: ``pip install ".[plots,onnx]"`` in a copy of the source; ``onnxruntime`` and a C
compiler to compare, which this page leaves out where they are missing.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import crossfade as cf

plt.style.use("crossfade.plots.crossfade")
folder = Path(tempfile.mkdtemp())  # take a folder of your own

# %%
# A person's classifier
# ---------------------
#
# The crowd has 35 people; somebody else brings four labelled windows of each class.

people = cf.load_mental_math()
person, crowd = people[0], people[1:]
few = np.concatenate([np.flatnonzero(person.y == label)[:4] for label in (0, 1)])
new = np.setdiff1d(np.arange(len(person.y)), few)

prior = cf.TaskPrior.from_tasks(crowd)
model = cf.HierarchicalBlendClassifier(prior).fit(person.X[few], person.y[few])
lower, upper = model.expected_accuracy_interval(0.9)
print(f"expected accuracy {model.expected_accuracy_:.2f}, 90 % interval {lower:.2f} to {upper:.2f}")

# %%
# The model file
# --------------
#
# JSON: a few numbers, the names of the features, the *recipe* by which they are made, and a card
# that says whom the model is for, what it was made from and how sure it is. It holds no code.

cf.save_model(model, folder / "model.json")
print(cf.load_model(folder / "model.json").card())

# %%
# Onto the device
# ---------------
#
# One function writes all formats, by the file name's extension: a C header, ONNX, or the schema
# with which any language can read the model file. In a terminal it is ``crossfade export
# model.json -o model.h``.

for name in ("model.h", "model.onnx", "model.schema.json"):
    cf.export_model(model, folder / name)
    print(f"{name}: {(folder / name).stat().st_size} bytes")

# %%
# **C.** The header needs ``math.h`` and allocates nothing. This program reads windows, one a
# line, and prints class and probability:

(folder / "main.c").write_text(r"""
#include <stdio.h>
#include "model.h"

int main(void)
{
    double x[CROSSFADE_N_FEATURES], p[CROSSFADE_N_CLASSES];
    for (;;) {
        for (int i = 0; i < CROSSFADE_N_FEATURES; i++)
            if (scanf("%lf", &x[i]) != 1)
                return 0;
        crossfade_probability(x, p);
        printf("%d %.17g\n", crossfade_predict(x), p[1]);
    }
}
""")
expected = model.predict(person.X[new]), model.predict_proba(person.X[new])[:, 1]
answers = {"Python": expected}
compiler = shutil.which("gcc") or shutil.which("cc")
if compiler is None:
    print("no C compiler here: left out")
else:
    program = folder / "main"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run([compiler, *strict, folder / "main.c", "-o", program, "-lm"], check=True)
    lines = "\n".join(" ".join(map(repr, row.tolist())) for row in person.X[new])
    said = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers["C"] = tuple(np.array([line.split() for line in said.stdout.splitlines()], float).T)

# %%
# **ONNX.** The graph has standard operators only, and takes single precision, as most
# accelerators do.

try:
    import onnxruntime
except ImportError:
    print("no onnxruntime here: left out")
else:
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    labels, p = session.run(None, {"features": person.X[new].astype(np.float32)})
    answers["ONNX"] = labels, p[:, 1]

# %%
# Do they agree?
# --------------
#
# Compare before you trust a device, on windows of the kind that it will see.

for name, (labels, p) in answers.items():
    same = int((labels == expected[0]).sum())
    print(f"{name:6s} {same} of {len(new)} labels alike, p within {abs(p - expected[1]).max():.1e}")

figure, ax = plt.subplots(figsize=(5.4, 2.4))
looks = {"Python": ("o", "#0072b2", 7), "C": ("s", "#d55e00", 4), "ONNX": (".", "#000000", 3)}
order = np.argsort(person.y[new], kind="stable")
for name, (_, p) in answers.items():
    marker, colour, size = looks[name]
    ax.plot(
        np.asarray(p)[order], marker, color=colour, markersize=size, fillstyle="none", label=name
    )
ax.axhline(0.5, color="grey", linestyle=":", linewidth=0.8)
ax.axvline((person.y[new] == 0).sum() - 0.5, color="grey", linewidth=0.8)
ax.text(1, 1.0, "at rest")
ax.text((person.y[new] == 0).sum() + 1, 1.0, "at arithmetic")
ax.set(xlabel="window", ylabel="probability of arithmetic", ylim=(0, 1.08))
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3)

# %%
# The marks coincide. The probabilities stay away from 0 and 1 on purpose: after four windows of
# each class nobody can be sure.
#
# What the device must do itself
# ------------------------------
#
# A model takes features, not samples. Filter, reference, windows and band powers have to be
# computed on the device exactly as the recipe says. The recipe is in the card, in the header and
# in the ONNX file:

print(people.recipe)

# %%
# This recipe filters with zero phase, which needs future samples. For a device, make the features
# with ``crossfade features --causal`` (:doc:`my_recordings`). :doc:`/live` has the formats in
# detail, the schema of the JSON file, and how fast the C code is.
#
# If it does not work
# -------------------
#
# Labels differ between device and Python
#     Compare the *features* first: order, units, filter, window. The rule is the easy part.
#
# ``crossfade_predict`` returns -1
#     A feature is NaN or infinite.
#
# An error that names ``crossfade[onnx]``
#     ``pip install ".[onnx]"`` in a copy of the source; C and JSON need nothing.
#
# Probabilities are never above 0.9
#     They are calibrated: with more labelled windows they move further from 0.5.
