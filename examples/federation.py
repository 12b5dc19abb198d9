"""Five sites, one prior: a real federation on this machine, and what its server saw.

Run as ``python examples/federation.py [picture.png]``.
"""

import io
import logging
import multiprocessing
import socket
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from crossfade import TaskPrior, load_mental_math
from crossfade.federated import Agreement, join, serve

plt.style.use("crossfade.plots.crossfade")

logging.disable(logging.WARNING)  # Flower's own log; each process reads this line
SITES = {"A": (4, 11), "B": (11, 18), "C": (18, 24), "D": (24, 30), "E": (30, 36)}


def agreed():
    """Scale from four participants who may be shown; the other 32 are spread over the sites."""
    tasks = load_mental_math()
    scale = TaskPrior.from_tasks(tasks[:4]).feature_scale
    return Agreement(scale, (0, 1), tasks.feature_names)


def one_site(name, address):
    """What runs at a hospital."""
    first, last = SITES[name]
    join(load_mental_math()[first:last], agreed(), name, address)


def sums(prior):
    """The numbers of a prior that travel, beside J."""
    upper = prior.outer_sum[np.triu_indices(prior.n_features)]
    return np.concatenate([prior.direction_sum, upper])


def main(path):
    """Run the federation and draw the picture."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    began = time.perf_counter()
    new = multiprocessing.get_context("spawn")
    sites = [new.Process(target=one_site, args=(name, address)) for name in SITES]
    messages = []
    try:
        for site in sites:
            site.start()
        prior = serve(agreed(), len(SITES), address=address, wait=120, on_message=messages.append)
        seconds = time.perf_counter() - began
        for site in sites:
            site.join(30)
    finally:
        for site in sites:
            site.terminate()

    tasks, scale = load_mental_math(), agreed().feature_scale
    pooled = TaskPrior.from_tasks(tasks[4:], feature_scale=scale)
    difference = np.abs(sums(prior) - sums(pooled)).max()
    print(f"{len(SITES)} sites, {prior.n_tasks} tasks: {seconds:.1f} s from start to prior")
    print(f"largest difference from the pooled sums: {difference:.1e}")

    names, masked = {}, {}
    for message in filter(lambda message: message.has_content(), messages):
        node, records = message.metadata.src_node_id, message.content.config_records
        if "crossfade" in records:
            names[node] = records["crossfade"]["site"]
        content = records.get("secaggplus_configs", {}).get("masked_params")
        if content:
            masked[names[node]] = np.load(io.BytesIO(content[1]))[1:] / 2.0**56
    own = {
        name: sums(TaskPrior.from_tasks(tasks[first:last], feature_scale=scale))
        for name, (first, last) in SITES.items()
    }
    chance = 2.0 / np.sqrt(len(sums(prior)))
    print(f"correlation of a site's sums with what the server saw; chance is up to {chance:.2f}:")
    for name in SITES:
        correlation = np.corrcoef(own[name], masked[name])[0, 1]
        print(f"  {name} {correlation:+.2f}")

    colours = ("#332288", "#cc6677", "#117733", "#ddaa33", "#88ccee")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
    for colour, marker, name in zip(colours, "osD^v", SITES, strict=True):
        left.plot(own[name], masked[name], marker, color=colour, ms=4, alpha=0.8, label=name)
    left.set(xlabel="sums of a site, known to it alone", ylabel="masked sums / 2⁵⁶")
    left.set_title("What the server saw of each site")
    left.set(ylim=(0, 1.25), yticks=[0, 0.5, 1])
    left.legend(ncols=5, loc="upper center", handletextpad=0, columnspacing=1)
    right.axline((0, 0), slope=1, color="0.7", lw=1)
    right.plot(sums(pooled), sums(prior), "o", color="#332288", ms=4)
    right.set(xlabel="sums of the pooled tasks", ylabel="sums from the federation")
    right.set_title(f"What it learnt of all: off by {difference:.0e} at most")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "results/federation.png")
