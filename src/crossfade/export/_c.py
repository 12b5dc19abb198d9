"""A model as one C99 header: no dependency but ``math.h``, no allocation, doubles throughout."""

from __future__ import annotations

import json
from collections.abc import Iterable

from crossfade._typing import Array
from crossfade.blend import SavedRule

#: What ends a comment, seems to begin another, or is another character to a compiler.
_BREAKS = ("*/", "/*", "??")

_HEADER = """\
/* {title}
 *
{said}
 *
 * int crossfade_predict(features): place of the likeliest class, from 0 on; -1 where a score is no
 * number. void crossfade_probability(features, probability): probability of each class.
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

/* Of each score: intercept; mean, spread, deviation, shift and offset of its log odds. */
static const double crossfade_rule[CROSSFADE_N_SCORES][6] = {{
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
    double u = (crossfade_score(features, place) + rule[4]) / rule[3];
    if (u > 1e100)
        u = 1e100;
    if (u < -1e100)
        u = -1e100;
    /* 1.57... is half of pi. */
    return 2.0 * rule[1] * u / sqrt(1.0 + 1.5707963267948966 * rule[2] * rule[2] * u * u) + rule[5];
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
    "rests": f"""\
    double odds, most, sum = 0.0;
    int i;
    for (i = 0; i < CROSSFADE_N_CLASSES; i++) {{
        odds = crossfade_log_odds(features, i);
        probability[i] = odds > 0.0 ? -log1p(exp(-odds)) : odds - log1p(exp(odds));
    }}
    most = probability[0];
    for (i = 1; i < CROSSFADE_N_CLASSES; i++)
        most = probability[i] > most ? probability[i] : most;
    for (i = 0; i < CROSSFADE_N_CLASSES; i++)
        sum += probability[i] = exp(probability[i] - most);
{_SUM_TO_ONE}""",
    "pairs": f"""\
    /* beaten[i][j] is the probability of class j, if it is one of i and j. */
    double beaten[CROSSFADE_N_CLASSES][CROSSFADE_N_CLASSES];
    double a[CROSSFADE_N_CLASSES][CROSSFADE_N_CLASSES + 1];
    double odds, factor, sum = 0.0;
    int i, j, k, place = 0;
    for (i = 0; i < CROSSFADE_N_CLASSES; i++)
        for (j = i + 1; j < CROSSFADE_N_CLASSES; j++) {{
            odds = crossfade_log_odds(features, place++);
            beaten[i][j] = 1.0 / (1.0 + exp(-odds));
            beaten[j][i] = 1.0 / (1.0 + exp(odds));
        }}
    for (i = 0; i < CROSSFADE_N_CLASSES; i++) {{
        a[i][i] = a[i][CROSSFADE_N_CLASSES] = 1.0;
        for (j = 0; j < CROSSFADE_N_CLASSES; j++)
            if (j != i) {{
                a[i][j] = 1.0 - beaten[i][j] * beaten[j][i];
                a[i][i] += beaten[i][j] * beaten[i][j];
            }}
    }}
    /* Elimination needs no pivots: the matrix is symmetric and positive definite. */
    for (k = 0; k < CROSSFADE_N_CLASSES; k++)
        for (i = 0; i < CROSSFADE_N_CLASSES; i++)
            if (i != k) {{
                factor = a[i][k] / a[k][k];
                for (j = k; j <= CROSSFADE_N_CLASSES; j++)
                    a[i][j] -= factor * a[k][j];
            }}
    for (i = 0; i < CROSSFADE_N_CLASSES; i++) {{
        probability[i] = a[i][CROSSFADE_N_CLASSES] / a[i][i];
        if (probability[i] < 0.0)
            probability[i] = 0.0;
        sum += probability[i];
    }}
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
_PREDICT["pairs"] = _PREDICT["rests"] = """\
    double probability[CROSSFADE_N_CLASSES];
    int i, best = 0;
    for (i = 0; i < CROSSFADE_N_SCORES; i++)
        if (!isfinite(crossfade_score(features, i)))
            return -1;
    crossfade_probability(features, probability);
    for (i = 1; i < CROSSFADE_N_CLASSES; i++)
        if (probability[i] > probability[best])
            best = i;
    return best;"""


def header_of(rule: SavedRule) -> str:
    """The header; refuses names that would break its comments."""
    classes = rule.classes_.tolist()
    names = getattr(rule, "feature_names_in_", None)
    called = (
        [f"feature {place}" for place in range(rule.n_features_in_)] if names is None else names
    )
    rows = [rule.intercept_, *rule._calibration[:5]]
    said = [
        *(_class_text(rule, place, label) for place, label in enumerate(classes)),
        f"Recipe of the features: {rule.recipe_ or 'not known'}",
        repr(rule),
    ]
    return _HEADER.format(
        title="A model of one person, written by Crossfade",
        said=_commented(said),
        features=_commented(f"{place}: {_quoted(name)}" for place, name in enumerate(called)),
        n_features=rule.n_features_in_,
        n_classes=len(classes),
        n_scores=len(rule.coef_),
        coef=_rows(rule.coef_),
        rule=_rows(zip(*rows, strict=True)),
        probability=_PROBABILITY[rule.coupling_],
        predict=_PREDICT[rule.coupling_],
    )


def _class_text(rule: SavedRule, place: int, label: object) -> str:
    name = None if rule.class_names_ is None else rule.class_names_[place]
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
