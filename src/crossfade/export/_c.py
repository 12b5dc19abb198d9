"""A model as one C99 header: no dependency but ``math.h``, no allocation, doubles throughout."""

from __future__ import annotations

import json
from collections.abc import Iterable

from crossfade._typing import Array
from crossfade.blend import Rule
from crossfade.risk import log_odds

#: What ends a comment, seems to begin another, or is another character to a compiler.
_BREAKS = ("*/", "/*", "??")

_HEADER = """\
/* {title}
 *
{said}
 *
 * int crossfade_predict(features): place of the likeliest class, from 0 on; -1 if a score is not
 * finite. void crossfade_probability(features, probability): probability of each class.
 * Features are {n_features} doubles, in this order:
 *
{features}
 */
#ifndef CROSSFADE_MODEL_H
#define CROSSFADE_MODEL_H

#include <math.h>

#define CROSSFADE_N_FEATURES {n_features}
#define CROSSFADE_N_CLASSES {n_classes}
#define CROSSFADE_N_SCORES {n_scores}

static const double crossfade_coef[CROSSFADE_N_SCORES][CROSSFADE_N_FEATURES] = {{
{coef}
}};

/* Of each score: intercept; slope, bend, shift and offset of its log odds. */
static const double crossfade_rule[CROSSFADE_N_SCORES][5] = {{
{rule}
}};

static inline double crossfade_score(const double *features, int place)
{{
    double score = crossfade_rule[place][0];
    int j;
    for (j = 0; j < CROSSFADE_N_FEATURES; j++)
        score += crossfade_coef[place][j] * features[j];
    return score;
}}

static inline double crossfade_log_odds(const double *features, int place)
{{
    const double *rule = crossfade_rule[place];
    double s = crossfade_score(features, place) + rule[3];
    if (s > 1e100)
        s = 1e100;
    if (s < -1e100)
        s = -1e100;
    return rule[1] * s / hypot(1.0, rule[2] * s) + rule[4];
}}

static inline void crossfade_probability(const double *features, double *probability)
{{
{probability}
}}

static inline int crossfade_predict(const double *features)
{{
{predict}
}}

#endif
"""

_SUM_TO_ONE = """\
    for (i = 0; i < CROSSFADE_N_CLASSES; i++)
        probability[i] /= sum;"""

_PROBABILITY = {
    "two": """\
    double odds = crossfade_log_odds(features, 0);
    probability[0] = 1.0 / (1.0 + exp(odds));
    probability[1] = 1.0 / (1.0 + exp(-odds));""",
    "softmax": f"""\
    double most, sum = 0.0;
    int i;
    for (i = 0; i < CROSSFADE_N_CLASSES; i++)
        probability[i] = crossfade_log_odds(features, i);
    most = probability[0];
    for (i = 1; i < CROSSFADE_N_CLASSES; i++)
        most = probability[i] > most ? probability[i] : most;
    for (i = 0; i < CROSSFADE_N_CLASSES; i++)
        sum += probability[i] = exp(probability[i] - most);
{_SUM_TO_ONE}""",
}

_PREDICT = {
    "two": """\
    double score = crossfade_score(features, 0);
    if (!isfinite(score))
        return -1;
    return score > 0.0;""",
    "softmax": """\
    double score[CROSSFADE_N_CLASSES];
    int i, best = 0;
    for (i = 0; i < CROSSFADE_N_CLASSES; i++) {
        score[i] = crossfade_score(features, i);
        if (!isfinite(score[i]))
            return -1;
        if (score[i] > score[best])
            best = i;
    }
    return best;""",
}


def header_of(rule: Rule) -> str:
    """The header; refuses names that would break its comments."""
    classes, d = rule.classes.tolist(), rule.coef.shape[1]
    names = rule.about.feature_names or [f"feature {place}" for place in range(d)]
    two = len(classes) == 2
    slope, bend = (float(one) for one in rule.slope)
    offset = -float(log_odds(rule.class_prior[1])) if two else 0.0
    same = (slope, bend, float(rule.shift), offset)
    said = [
        *(_class_text(rule, place, label) for place, label in enumerate(classes)),
        f"Recipe of the features: {rule.about.recipe or 'not known'}",
        repr(rule),
    ]
    return _HEADER.format(
        title="A model of one person, written by Crossfade",
        said=_commented(said),
        features=_commented(f"{place}: {_quoted(name)}" for place, name in enumerate(names)),
        n_features=d,
        n_classes=len(classes),
        n_scores=len(rule.coef),
        coef=_rows(rule.coef),
        rule=_rows([(float(one), *same) for one in rule.intercept]),
        probability=_PROBABILITY["two" if two else "softmax"],
        predict=_PREDICT["two" if two else "softmax"],
    )


def _class_text(rule: Rule, place: int, label: object) -> str:
    name = None if rule.about.class_names is None else rule.about.class_names[place]
    said = "" if name is None or name == label else f", {_quoted(name)}"
    return f"Class {place}: {_quoted(label)}{said}"


def _quoted(name: object) -> str:
    return json.dumps(name, ensure_ascii=False)


def _commented(lines: Iterable[str]) -> str:
    """Lines of a comment."""
    checked = []
    for line in lines:
        if not line.isprintable() or any(part in line for part in _BREAKS):
            raise ValueError(
                "The C header names classes, features and channels in a comment, and this would "
                f"break it: {line!r}. Names must be printable, without */, /* and ??. Rename it, "
                "or export to ONNX."
            )
        checked.append(f" * {line}")
    return "\n".join(checked)


def _rows(rows: Iterable[Iterable[float]] | Array) -> str:
    # The shortest digits that read as the same double.
    return ",\n".join(f"    {{{', '.join(repr(float(one)) for one in row)}}}" for row in rows)
