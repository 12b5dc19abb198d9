"""Five sites, one prior: a secure sum by files on this machine, and what its adder saw.

Run as ``python examples/federation.py [picture.png]``.
"""

import sys
import tempfile
from functools import reduce
from operator import add
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from crossfade import TaskPrior, federation, load_mental_math

plt.style.use("crossfade.plots.crossfade")

SITES = {"A": (4, 11), "B": (11, 18), "C": (18, 24), "D": (24, 30), "E": (30, 36)}


def secure_sum(folder):
    """Each site's own prior, and that of all; as at home, but in one folder."""
    tasks = load_mental_math()
    # Of four participants who may be shown, and who are at no site.
    scale = TaskPrior.from_tasks(tasks[:4], replay=False).feature_scale
    federation.write_scale(folder / "scale.csv", tasks.feature_names, scale)
    for name in SITES:
        federation.make_key(folder / name)
    public = [folder / f"{name}.pub" for name in SITES]
    agreement = folder / "agreement.json"
    federation.agree(public, folder / "scale.csv", [0, 1], agreement)
    own = {
        name: federation.mask(
            tasks[slice(*part)], agreement, folder / f"{name}.key", folder / f"{name}.masked"
        )
        for name, part in SITES.items()
    }
    return own, federation.sum_masked([folder / f"{name}.masked" for name in SITES], agreement)


def sums(prior):
    """Some of the numbers that travel: those of the directions."""
    upper = prior.outer_sum[np.triu_indices(prior.n_features)]
    return np.concatenate([prior.direction_sum, upper])


def main(path):
    """Run the round and draw the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own, prior = secure_sum(folder)
        # A number is a coarse and a fine word; these are the coarse ones behind header and count.
        masked = {
            name: np.frombuffer((folder / f"{name}.masked").read_bytes()[135:], "<u8")[1:]
            for name in SITES
        }
    exact = reduce(add, own.values())
    difference = np.abs(sums(prior) - sums(exact)).max()
    print(f"{len(SITES)} sites, {prior.n_tasks} tasks")
    print(f"largest difference from the sum of the sites' own priors: {difference:.1e}")
    size = len(sums(prior))
    print(f"correlation of a site's sums with its file; chance is up to {2 / np.sqrt(size):.2f}:")
    for name in SITES:
        print(f"  {name} {np.corrcoef(sums(own[name]), masked[name][:size])[0, 1]:+.2f}")

    colours = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7")
    figure, (left, right) = plt.subplots(1, 2, figsize=(180 / 25.4, 2.9))
    for colour, marker, name in zip(colours, "osD^v", SITES, strict=True):
        words = masked[name][:size] / 2.0**64
        left.plot(sums(own[name]), words, marker, color=colour, ms=4, alpha=0.8, label=name)
    left.set(xlabel="sums of a site, known to it alone", ylabel="masked sums / 2⁶⁴")
    left.set_title("what each site hands over")
    left.set(ylim=(0, 1.25), yticks=[0, 0.5, 1])
    left.legend(ncols=5, loc="upper center", handletextpad=0, columnspacing=1)
    right.axline((0, 0), slope=1, color="#666666", lw=0.8)
    right.plot(sums(exact), sums(prior), "o", color="#0072b2", ms=4)
    right.set(xlabel="sum of the sites' own priors", ylabel="sum of the masked files")
    right.set_title(f"what all of it adds up to: off by {difference:.0e}")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "results/federation.png")
