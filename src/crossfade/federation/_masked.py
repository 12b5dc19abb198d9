"""Masked files: a site's sums under pairwise masks, signed; and their sum, which has none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from crossfade._files import check_writable, refuse_same_file, write_whole
from crossfade._typing import Array
from crossfade._validate import check_spectrum
from crossfade.federation._agreement import SERIES, Agreement
from crossfade.federation._files import ANY_MASKED, MASKED, code_of
from crossfade.federation._keys import Secret, Site, primitives, read_secret, spend
from crossfade.federation._layout import (
    Words,
    largest_sum,
    n_words,
    of_words,
    packed,
    prior_of,
    shapes_of,
    sums_of,
    to_words,
    unpacked,
)
from crossfade.prior._compatibility import name_misfits
from crossfade.prior._parts import part_of_sum
from crossfade.prior._task_prior import TaskPrior
from crossfade.tasks import Task, TaskSet

#: A masked file: how it begins, digest of the agreement, fingerprint of the site, signature, words.
_DIGEST, _FINGERPRINT, _SIGNATURE = 32, 20, 64
_HEAD = len(MASKED) + _DIGEST + _FINGERPRINT
#: How far sums of unit directions may be off by rounding, for each task.
_SLACK = 1e-9


def mask(
    tasks: Iterable[Task],
    agreement: str | os.PathLike[str],
    key: str | os.PathLike[str],
    out: str | os.PathLike[str],
) -> TaskPrior:
    """Write the masked sums of a site, and erase its secret key.

    The key is erased before the file is written, so that it never makes two. Refuses, before that,
    tasks that are not what was agreed on.

    Parameters
    ----------
    tasks : iterable of Task
        The site's tasks; they do not leave it.
    agreement : path-like
        What :func:`agree` wrote.
    key : path-like
        The site's ``.key`` file, which was not used before.
    out : path-like
        Masked file to write, to be handed over.

    Returns
    -------
    TaskPrior
        The site's own prior, which stays there.
    """
    refuse_same_file(out, agreement, key)
    agreed = Agreement.load(agreement)
    if agreed.crossfade != SERIES:
        raise ValueError(
            f"{agreement} was made by Crossfade {agreed.crossfade}, and this is {SERIES}: sites "
            "with different versions may compute different sums. Install the same version at every "
            "site, or ask for a new agreement; the key was not used."
        )
    secret = read_secret(key)
    if secret.site not in agreed.sites:
        names = ", ".join(repr(site.name) for site in agreed.sites)
        raise ValueError(
            f"{key} is the key of {secret.site.name!r} ({secret.site.code}), which is no site of "
            f"{agreement}: these are {names}. Give the key whose .pub file went into it, or ask "
            "for an agreement with yours."
        )
    prior = _local_prior(_by_name(tasks, agreed), agreed)
    words = to_words(_local_sums(prior, agreed)) + site_mask(secret, agreed)
    signed = MASKED + agreed.digest + secret.site.fingerprint
    body = words.astype("<u8").tobytes()
    signature = primitives().sign(secret.signing, signed + body)
    check_writable(out)  # while the key is whole
    spend(secret, agreed.digest)
    write_whole(out, signed + signature + body)
    return prior


def sum_masked(
    files: Iterable[str | os.PathLike[str]], agreement: str | os.PathLike[str]
) -> TaskPrior:
    """Prior of all sites, from their masked files.

    Parameters
    ----------
    files : iterable of path-like
        The masked file of every site, in any order.
    agreement : path-like
        What they were made for.

    Returns
    -------
    TaskPrior
        What the sites' own priors add up to by ``+``.
    """
    agreed = Agreement.load(agreement)
    total: Words = np.zeros(1, np.uint64)
    found: dict[Site, str | os.PathLike[str]] = {}
    for file in files:
        site, words = read_masked(file, agreed)
        if site in found:
            raise ValueError(
                f"{found[site]} and {file} are both of {site.name!r}. Give the file of each site "
                "once."
            )
        found[site] = file
        total = total + words
    missing = [repr(site.name) for site in agreed.sites if site not in found]
    if missing:
        raise ValueError(
            f"The masked file of {', '.join(missing)} is missing; only all {len(agreed.sites)} "
            "together give a sum. Ask for it. If a site has dropped out, begin a new round without "
            "it, with new keys."
        )
    part = part_of_sum(agreed.digest, total.astype("<u8").tobytes())
    return replace(_checked_prior(of_words(total), agreed), parts=part)


def site_mask(secret: Secret, agreement: Agreement) -> Words:
    """Sum of the masks that a site shares with each of the others, half of them subtracted."""
    size = n_words(shapes_of(agreement.n_features, agreement.parts))
    total: Words = np.zeros(size, np.uint64)
    for other in agreement.sites:
        if other == secret.site:
            continue
        stream = pair_mask(secret, other, agreement, size)
        if secret.site.fingerprint < other.fingerprint:
            total += stream
        else:
            total -= stream
    return total


def pair_mask(secret: Secret, other: Site, agreement: Agreement, size: int) -> Words:
    """Words that this site and another share, uniform for everybody else."""
    pair = b"".join(sorted((secret.site.fingerprint, other.fingerprint)))
    try:
        stream = primitives().shared_stream(
            secret.exchange, other.exchange, agreement.digest, pair, 8 * size
        )
    except ValueError as reason:
        raise ValueError(
            f"The public key of {other.name!r} is none: every mask made with it could be guessed. "
            "Ask that site for a new one."
        ) from reason
    return np.frombuffer(stream, "<u8").astype(np.uint64)


def _by_name(tasks: Iterable[Task], agreed: Agreement) -> list[Task]:
    """The tasks; with the names of their classes for labels, where these are what was agreed on."""
    names = tasks.class_names if isinstance(tasks, TaskSet) else {}
    if set(names.values()) != set(agreed.classes):
        return list(tasks)
    return [
        replace(
            task, y=np.array([names.get(label, label) for label in np.asarray(task.y).tolist()])
        )
        for task in tasks
    ]


def refuse_masked(path: str | os.PathLike[str]) -> None:
    """Refuse a masked file instead of a table of tasks."""
    place = Path(path)
    if place.is_file():
        with open(place, "rb") as stream:
            if stream.read(len(ANY_MASKED)) == ANY_MASKED:
                raise ValueError(
                    f"{path} is a masked file, which `crossfade federate sum` adds up. `mask` takes"
                    " the table of tasks of this site."
                )


def read_masked(path: str | os.PathLike[str], agreement: Agreement) -> tuple[Site, Words]:
    """Site and words of a masked file; refuses what is not one of this agreement, as signed."""
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    size = 8 * n_words(shapes_of(agreement.n_features, agreement.parts))
    with open(place, "rb") as stream:
        signed = stream.read(_HEAD)
        if not signed.startswith(MASKED):
            newer = ", or one of another version of Crossfade" * signed.startswith(ANY_MASKED)
            raise ValueError(
                f"{path} is not a masked file{newer}. Ask for the file that `crossfade federate "
                "mask` wrote."
            )
        digest, fingerprint = signed[len(MASKED) : -_FINGERPRINT], signed[-_FINGERPRINT:]
        if digest != agreement.digest:
            raise ValueError(
                f"{path} was masked for another agreement, {code_of(digest)}; this one is "
                f"{agreement.code}. Sites, scale, labels or limits may differ. Compare the codes, "
                "and ask the site for its file of this round."
            )
        sites = {site.fingerprint: site for site in agreement.sites}
        if fingerprint not in sites:
            raise ValueError(
                f"{path} comes from an unknown site, {code_of(fingerprint)}: it is not in the "
                "agreement. Leave it out."
            )
        site = sites[fingerprint]
        # Its size is looked at before anything of that size is read.
        whole = place.stat().st_size == _HEAD + _SIGNATURE + size
        signature, body = (stream.read(_SIGNATURE), stream.read(size)) if whole else (b"", b"")
    if not whole or not primitives().is_signed(site.signing, signature, signed + body):
        raise ValueError(
            f"{path} was cut or altered after {site.name!r} wrote it: its signature does not fit. "
            "Ask for the file again."
        )
    return site, np.frombuffer(body, "<u8").astype(np.uint64)


def _local_prior(tasks: list[Task], agreement: Agreement) -> TaskPrior:
    """Prior of one site in the agreed units; refuses tasks that are not what was agreed on."""
    if not tasks:
        raise ValueError("There is no task to sum. Give the tasks of this site.")
    wrong = name_misfits(
        agreement.feature_names,
        agreement.n_features,
        tasks[0].feature_names or (),
        "the agreement",
    )
    if wrong:
        raise _unlike(" ".join(wrong))
    classes = tuple(tasks[0].classes.tolist())
    if classes != agreement.classes:
        raise _unlike(f"Their classes are {classes}, the agreed ones {agreement.classes}.")
    if len(tasks) > agreement.max_tasks:
        raise _unlike(f"There are {len(tasks)}, and a site brings {agreement.max_tasks} at most.")
    return TaskPrior.from_tasks(
        tasks,
        feature_scale=agreement.feature_scale,
        class_means="class_means" in agreement.parts,
        replay="replay" in agreement.parts,
        clip=agreement.clip,
    )


def _unlike(difference: str) -> ValueError:
    return ValueError(
        f"These tasks are not what the sites agreed on. {difference} Change the table, or ask for "
        "a new agreement; the key was not used."
    )


def _local_sums(prior: TaskPrior, agreement: Agreement) -> Array:
    """Vector of a site's sums; refuses missing parts, and sums too large for fixed point."""
    sums = sums_of(prior, shapes_of(agreement.n_features, agreement.parts))
    most = largest_sum(len(agreement.sites))
    for name, value in sums.items():
        part = name.partition(".")[0]
        if value is None:
            raise ValueError(
                f"The tasks of this site give no {part}, which was agreed on: they have too few "
                "windows. Leave such tasks out, or agree on a round without it (`crossfade "
                f"federate agree --without {part}`); the key was not used."
            )
        size = np.abs(value)
        if not size.max() <= most:
            # Only sums over features are without a bound; their last axis is that of features.
            place = np.unravel_index(np.argmax(size), size.shape)[-1] % agreement.n_features
            raise ValueError(
                f"The sums of this site are too large: {part} has {size.max():.3g} for the feature "
                f"{agreement.feature_names[place]!r}, the agreement allows {most:.3g}. It may be "
                "far from zero in units of the agreed scale: check its units, subtract a constant "
                "that all sites agree on, or agree on a larger scale. The key was not used."
            )
    return packed(sums)


def _checked_prior(vector: Array, agreement: Agreement) -> TaskPrior:
    """Prior from the sums of all sites; refuses sums that no tasks have."""
    n_sites = len(agreement.sites)
    sums = unpacked(vector, shapes_of(agreement.n_features, agreement.parts))
    n_tasks = float(sums["n_tasks"])
    if n_tasks != round(n_tasks) or not n_sites <= n_tasks <= n_sites * agreement.max_tasks:
        raise _contradiction(
            f"the number of tasks is {n_tasks:.9g}, of {n_sites} sites of 1 to "
            f"{agreement.max_tasks} tasks each"
        )
    if n_tasks < agreement.min_tasks:
        raise _too_few(f"{n_tasks:g} tasks", agreement)
    n_people = float(sums["people.n_people"])
    if n_people != round(n_people) or not n_sites <= n_people <= n_tasks:
        raise _contradiction(f"the number of people is {n_people:.9g}, of {n_tasks:g} tasks")
    if n_people < agreement.min_tasks:
        raise _too_few(f"{n_people:g} people, in {n_tasks:g} tasks", agreement)
    for start, count in (("", n_tasks), ("people.", n_people)):
        _check_directions(sums[f"{start}direction_sum"], sums[f"{start}outer_sum"], count)
    counted = n_tasks if agreement.clip is None else n_people
    people = [
        float(sums.get(f"class_means.{name}", whole))
        for name, whole in (("n_people", counted), ("centred", n_tasks))
    ]
    if people[0] != counted:
        raise _contradiction(f"class means are of {people[0]:g} people, not {counted:g}")
    if people[1] not in (0.0, n_tasks):
        raise ValueError(
            "Some sites have features that were centred person by person, and others have not: "
            "their class means are different things. Prepare the features alike, or agree on a "
            "round without class_means."
        )
    try:
        if "within_covariance" in sums:
            check_spectrum("within_covariance", np.linalg.eigvalsh(sums["within_covariance"]))
        prior = prior_of(
            sums,
            agreement.clip,
            feature_scale=agreement.feature_scale,
            classes=agreement.classes,
            feature_names=agreement.feature_names,
        )
    except ValueError as reason:
        raise _contradiction(str(reason).rstrip(".")) from reason
    return prior.annotated(
        made_by=f"{n_sites} sites, by the secure sum of the agreement {agreement.code}"
    )


def _check_directions(total: Array, outer: Array, count: float) -> None:
    """Refuse sums that so many unit directions, or means of some, cannot have."""
    slack = _SLACK * count
    length = float(np.linalg.norm(total))
    if length > count + slack:
        raise _contradiction(f"the directions sum to a length of {length:.9g}, of {count:g}")
    trace = float(np.trace(outer))
    if abs(trace - count) > slack:
        raise _contradiction(f"the trace of the outer products is {trace:.9g}, not {count:g}")
    mean = total / count
    if np.linalg.eigvalsh(outer / count - np.outer(mean, mean))[0] < -_SLACK:
        raise _contradiction("the sum and the outer products contradict each other")


def _too_few(found: str, agreement: Agreement) -> ValueError:
    return ValueError(
        f"All sites together have {found}; they agreed on {agreement.min_tasks} at least, since "
        "the sum of a few says too much about each. Find more people or sites for a new round."
    )


def _contradiction(what: str) -> ValueError:
    return ValueError(
        f"The sum fails its check: {what}. Some site handed over something other than sums of "
        "tasks, and a secure sum cannot say which. Make sure that all run the same version of "
        "Crossfade, and begin a new round."
    )
