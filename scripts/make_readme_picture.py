"""Draw docs/images/readme.png and readme-dark.png: four ways to calibrate, from no label on.

Run as ``python scripts/make_readme_picture.py [FOLDER]`` (a minute). The 36 people of the Mental
Math study that ships with the package are left out in turn; each labels consecutive windows from a
random start, 100 times. Prints the means, their 95 % intervals over people, and the paired
differences from what a user would otherwise pick.
"""

import sys
from pathlib import Path

from matplotlib import rc_context, style
from matplotlib.figure import Figure

from crossfade import CalibrationStudy, load_mental_math
from crossfade.study.statistics import compare, labels_saved, summarise

BUDGETS = (0, 1, 2, 4, 8, 16)
OURS, RIVAL = "hierarchical", "lda"
#: What each curve is called beside its end, how far above it in points, and its line and marker.
CURVES = {
    OURS: ("Crossfade's hierarchical blend", 5, "-", "o"),
    RIVAL: ("the person alone (scikit-learn's LDA)", -7, "-", "s"),
    "paper": ("the paper's Algorithm 1", -18, "--", "D"),
    "lda-pooled": ("everybody pooled (LDA, each person centred)", 0, "-", "^"),
}
#: Colours on white and on the dark of a code host, both at least 4.5 to 1.
SHADES = {
    "readme": ("#ffffff", "#1f2328", "#116632", "#a8326e", "#6b5b00", "#0062a0"),
    "readme-dark": ("#0d1117", "#e6edf3", "#4cc38a", "#f08cc0", "#d9b84c", "#6cb6ff"),
}


def draw(table, background, ink, colours):
    """The picture: accuracy against windows of each class, equal steps for doublings."""
    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    figure = Figure(figsize=(180 / 25.4, 80 / 25.4), facecolor=background)
    with rc_context(dict.fromkeys(inks, ink)):
        ax = figure.subplots()
    ax.set_facecolor(background)
    for colour, (name, (label, above, line, marker)) in zip(colours, CURVES.items(), strict=True):
        own = table[table["method"] == name].sort_values("budget")
        x = [BUDGETS.index(budget) for budget in own["budget"]]
        if name in (OURS, RIVAL):
            # Intervals over people stay in the background.
            ax.fill_between(x, own["low"], own["high"], color=colour, alpha=0.1, linewidth=0)
        width = 2.4 if name == OURS else 1.3
        look = {"color": colour, "linestyle": line, "linewidth": width, "marker": marker}
        ax.plot(x, own["mean"], markersize=4.5, **look)
        end = x[-1], own["mean"].iloc[-1]
        weight = "bold" if name == OURS else "normal"
        look = {"color": colour, "weight": weight, "va": "center"}
        ax.annotate(
            label, end, (8, above), textcoords="offset points", annotation_clip=False, **look
        )
    ax.plot([-0.2, len(BUDGETS) - 0.8], [0.5, 0.5], color=ink, linestyle=":", linewidth=0.9)
    ax.text(len(BUDGETS) - 0.75, 0.5, "chance", va="center", color=ink)
    ax.set_xticks(range(len(BUDGETS)), BUDGETS)
    ax.set(xlim=(-0.2, len(BUDGETS) + 1.6), ylim=(0.49, 0.81))
    ax.spines["bottom"].set_bounds(-0.2, len(BUDGETS) - 0.8)
    ax.set_xlabel("labelled windows of each class (2.5 s each)", x=0.36)
    ax.set_ylabel("balanced accuracy on the other windows")
    return figure


def main(folder):
    """Run the study, print its numbers and write both pictures."""
    study = CalibrationStudy(
        load_mental_math(), methods=list(CURVES), budgets=BUDGETS, n_splits=100, random_state=0
    )
    result = study.run(n_jobs=2)
    table = summarise(result)
    print(table[["method", "budget", "mean", "low", "high"]].round(3).to_string(index=False))
    columns = ["budget", "wins", "n_tasks", "mean_difference", "low", "high"]
    print(f"\n{OURS} minus {RIVAL}")
    print(compare(result, RIVAL, [OURS])[columns].round(3).to_string(index=False))
    columns = ["budget", "n_labelled", "accuracy", "needed", "bound", "low", "high"]
    print(f"\nwindows that {RIVAL} needs for the accuracy of {OURS}")
    print(labels_saved(result, RIVAL, OURS)[columns].round(3).to_string(index=False))
    folder.mkdir(parents=True, exist_ok=True)
    for name, (background, ink, *colours) in SHADES.items():
        draw(table, background, ink, colours).savefig(folder / f"{name}.png")
        print(f"Written: {folder / name}.png")


if __name__ == "__main__":
    style.use("crossfade.plots.crossfade")
    root = Path(__file__).parents[1]
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else root / "docs" / "images")
