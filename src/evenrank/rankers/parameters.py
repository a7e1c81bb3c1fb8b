"""What parameters of a model file may be. Names of choices (a solver, a loss) are left to `fit`, which knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from evenrank.rankers.content import short

LONGEST_TEXT = 1000
LARGEST_WHOLE = 2**64 - 1


@dataclass(frozen=True)
class Rule:
    """What a value must be, in words and as a test; None is allowed where ``optional``."""

    words: str
    holds: Callable[[Any], bool]
    optional: bool = False

    def __call__(self, value: Any) -> bool:
        return self.holds(value) or (self.optional and value is None)


def is_number(value: Any, least: float = float("-inf")) -> bool:
    """Tell whether it is a finite number, which a truth value is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (abs(value) <= LARGEST_WHOLE if isinstance(value, int) else isfinite(value)) and value >= least


def is_whole(value: Any, least: float = float("-inf")) -> bool:
    return isinstance(value, int) and is_number(value, least)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def is_label(value: Any) -> bool:
    """Tell whether a group may be called so: a text, a number or a truth value."""
    return isinstance(value, str | bool) or is_number(value)


def is_plain(value: Any, depth: int = 2) -> bool:
    """Tell whether it is None, a label, or a list of those; lists of lists as well."""
    if isinstance(value, list | tuple):
        return depth > 0 and all(is_plain(part, depth - 1) for part in value)
    return value is None or isinstance(value, bool) or is_number(value) or is_text(value)


def _at_least(least: float, *, whole: bool = False, optional: bool = False) -> Rule:
    kind = is_whole if whole else is_number
    words = f"a {'whole' if whole else 'finite'} number of at least {least:g}"
    return Rule(words, lambda value: kind(value, least), optional)


NUMBER = Rule("a finite number", is_number)
TEXT = Rule("a name", is_text)
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
PLAIN = Rule("a number, a text or a list of them", is_plain)
SIZES = Rule(
    "a list of whole numbers of at least 1",
    lambda value: isinstance(value, list | tuple) and all(is_whole(width, 1) for width in value),
)
WEIGHTS = Rule("a list of finite numbers", lambda value: isinstance(value, list | tuple) and all(map(is_number, value)))

PART = Rule("a number from 0 to 1", lambda value: is_number(value, 0) and value <= 1)

RULES: dict[str, Rule] = {
    "notion": TEXT,
    "scope": TEXT,
    "solver": TEXT,
    "loss": TEXT,
    "across": TEXT,
    "target": TEXT,
    "weighting": TEXT,
    "scale": Rule("a name", is_text, optional=True),
    "impute": Rule("a name", is_text, optional=True),
    "alpha": _at_least(0),
    "gamma": _at_least(0),
    "ridge": _at_least(0),
    "smoothing": _at_least(0),
    "weight_decay": _at_least(0),
    "strength": PART,
    "theta": PART,
    "shrink": FLAG,
    "max_ndcg_loss": _at_least(0, optional=True),
    "n_quantiles": _at_least(1, whole=True),
    "bias_cap": _at_least(0),
    "original_scale": FLAG,
    "adapt": FLAG,
    "max_violation": _at_least(0, optional=True),
    "temperature": _at_least(0, optional=True),
    "validation_fraction": Rule(PART.words, PART.holds, optional=True),
    "momentum": Rule("a finite number", is_number, optional=True),
    "learning_rate": _at_least(0, optional=True),
    "relevance_threshold": NUMBER,
    "k": _at_least(1, whole=True),
    "max_iter": _at_least(1, whole=True, optional=True),
    "epochs": _at_least(1, whole=True, optional=True),
    "batch_queries": _at_least(1, whole=True),
    "batch_items": _at_least(1, whole=True, optional=True),
    "seed": _at_least(0, whole=True),
    "random_state": _at_least(0, whole=True, optional=True),
    "group_aware": FLAG,
    "fit_intercept": FLAG,
    "reference": FLAG,
    "standardize": FLAG,
    "protected": Rule("a group's label", is_label, optional=True),
    "init": Rule(WEIGHTS.words, WEIGHTS.holds, optional=True),
    "hidden": SIZES,
    # Of XGBoost, which looks at them when it predicts.
    "missing": NUMBER,
    "enable_categorical": FLAG,
    "feature_types": Rule("a list of names", lambda value: isinstance(value, list) and all(map(is_text, value)), True),
}


def broken_rule(parameters: Mapping[str, Any]) -> str | None:
    """Name the first parameter that is not what it must be, in words; None if all are."""
    for name, value in parameters.items():
        rule = RULES.get(name, PLAIN)
        if not rule(value):
            return f"the parameter {name!r} must be {rule.words}; got {short(value)}"
    return None
