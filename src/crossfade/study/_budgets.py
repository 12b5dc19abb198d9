"""What a person labels: nothing, windows of each class, unequal numbers of them, a proportion.

Rows, tables and files hold a budget as one number, so that it can be sorted and grouped: 0 for no
label, a proportion below one, a whole number of windows of each class. Unequal numbers are their
mean, rounded up, with the numbers themselves as decimals, each with as many digits as the last
decimal says: (24, 2) is 13.24022, which stands after 13 and before 14.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

#: Nothing (0), a proportion (a float), windows of each class (an int), or of one after the other.
Budget = float | tuple[int, ...]

#: Decimal digits that a float holds.
_DIGITS = 15


def check_budget(budget: object, n_classes: int | None = None) -> Budget:
    """A budget in its plainest form: 0.0 is 0, and (2, 2) is 2."""
    if isinstance(budget, (tuple, list)) and len(budget) > 1 and all(map(_is_count, budget)):
        counts = tuple(int(one) for one in budget)
        if n_classes not in (None, len(counts)):
            raise ValueError(
                f"Budget {counts!r} must have one number for each of {n_classes} classes."
            )
        if len(_text_of(counts)) > _DIGITS + 1:
            raise ValueError(f"Budget {counts!r} has too many digits. Take fewer windows.")
        return counts if len(set(counts)) > 1 else counts[0]
    if _is_count(budget):
        return int(budget)  # type: ignore[call-overload, no-any-return]
    if isinstance(budget, (float, np.floating)) and 0.0 <= budget < 1.0:
        return float(budget) or 0
    raise ValueError(
        "A budget is 0, a proportion such as 0.1, a whole number of windows of each class such as "
        f"4, or one for each class such as (24, 2); got {budget!r}."
    )


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def windows_of_each_class(budget: Budget, counts: Sequence[int]) -> tuple[int, ...]:
    """Labelled windows of each class, of `counts`; proportions of the smallest are rounded up."""
    if isinstance(budget, tuple):
        return budget
    if not isinstance(budget, int):
        # 0.07 times 100 is above 7 by rounding only.
        budget = math.ceil(budget * min(counts) - 1e-9)
    return (budget,) * len(counts)


def leaves_test_windows(budget: Budget, counts: Sequence[int]) -> bool:
    """Whether a window of each class is left to test on."""
    n_each = windows_of_each_class(budget, counts)
    return all(n < count for n, count in zip(n_each, counts, strict=True))


def number_of(budget: Budget) -> float:
    """The number that stands for a budget in rows, tables and files."""
    return float(_text_of(budget) if isinstance(budget, tuple) else budget)


def _text_of(counts: tuple[int, ...]) -> str:
    width = len(str(max(counts)))
    decimals = "".join(f"{one:0{width}}" for one in counts)
    return f"{math.ceil(sum(counts) / len(counts))}.{decimals}{width}"


def budget_of(number: float) -> Budget:
    """The budget that a number in rows, tables and files stands for."""
    number = float(number)
    if number < 1.0:
        return number or 0
    if number.is_integer():
        return int(number)
    decimals = f"{number:.{_DIGITS}g}".partition(".")[2]
    digits, width = decimals[:-1], int(decimals[-1])
    if not width or len(digits) % width or len(digits) < 2 * width:
        raise ValueError(f"{number!r} does not stand for a budget. Take those of a study's rows.")
    return tuple(int(digits[place : place + width]) for place in range(0, len(digits), width))


def is_unequal(number: float) -> bool:
    """Whether a number stands for unequal numbers of windows, which belong to no curve."""
    return isinstance(budget_of(number), tuple)


def budget_text(number: float) -> str:
    """What a budget of the rows is called: "5 %", "2 of each class", "24+2", "no label"."""
    budget = budget_of(number)
    if isinstance(budget, tuple):
        return "+".join(map(str, budget))
    if not budget:
        return "no label"
    return f"{100.0 * budget:.3g} %" if budget < 1.0 else f"{budget} of each class"
