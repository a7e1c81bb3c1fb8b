"""Damaged and crafted model files, made from good ones: bytes, values of the JSON, lines of LightGBM's text, trees."""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from random import Random
from typing import Any

HOSTILE: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 2**31 - 1, 2**31, -(2**31), 2**63, 10**30, 0.5, -0.5, 1e308, -1e308, 1e-320,
    float("nan"), float("inf"), "", "x", "0", "-1", "nan", "1e999", "\ud800", "a\nb", "\x00", "٣", "x" * 2000, [], [[]],
    {}, {"a": 1}, [0], [1, 2, 3], ["a", "a"], [None], [1e308] * 3,
]  # fmt: skip
TOKENS = [
    "", "-1", "0", "1", "2", "3", "-2", "-9", "63", "255", "2147483647", "-2147483648", "4294967296", "99999999999999",
    "nan", "inf", "-inf", "1e999", "1e308", "-1e308", "1e-320", "0x10", "٣", "1 2", " ", "abc", "1.5", "+1", "1e5",
    ".5",
]  # fmt: skip
LINES = [
    "", "Tree=0", "Tree=7", "end of trees", "parameters:", "[num_threads: 200000]",
    "[forcedsplits_filename: /dev/null]",
    "end of parameters", "parser:", "num_class=3", "num_tree_per_iteration=2", "average_output", "objective=multiclass",
    "objective=binary sigmoid:-1", "leaf_value=1", "is_linear=1", "num_cat=1", "tree_sizes=1", "\r", "\x00",
]  # fmt: skip
# What a file must not be able to say about the machine that loads it.
MACHINE: dict[str, Any] = {
    "n_jobs": 200_000, "nthread": 10**6, "num_threads": 10**6, "device": "cuda", "device_type": "gpu", "verbose": 9,
    "verbosity": 3, "forcedsplits_filename": "/dev/zero", "machines": "a:1", "process_type": "update",
    "updater": "prune", "tree_learner": "data", "num_machines": 9, "callbacks": [1], "predict_leaf_index": True,
    "start_iteration_predict": 1, "num_iteration_predict": 1, "pred_early_stop": True,
    "early_stopping_rounds": 5, "eval_metric": "x",
    "kwargs": {},
}  # fmt: skip


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with a digest that fits, as anyone can make it."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    return rest | {"digest": sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}


def written(content: dict[str, Any], *, seal: bool = True) -> bytes:
    return json.dumps(sealed(content) if seal else content, indent=1).encode("utf-8", "surrogatepass")


# ---------------------------------------------------------------------- bytes


def damaged_bytes(data: bytes, random: Random) -> bytes:
    """Flipped bits, other bytes, parts cut, doubled or moved."""
    out = bytearray(data)
    a, b = sorted(random.randrange(len(out)) for _ in range(2))
    b = min(b, a + random.choice([1, 3, 40, len(out)]))
    action = random.randrange(7)
    if action <= 2:
        for _ in range(random.choice([1, 1, 1, 2, 5])):
            out[random.randrange(len(out))] ^= 1 << random.randrange(8)
    elif action == 3:
        out[a] = random.choice(b'0123456789-.eE+[]{}",: \n\\ux\x00\xff')
    elif action == 4:
        del out[a:b]
    elif action == 5:
        out[a:a] = out[a:b]
    else:
        out = out[:a]
    return bytes(out)


# ---------------------------------------------------------------------- JSON


def changed_json(value: Any, random: Random) -> Any:
    """A copy with one place changed: gently (a neighbour, a swap) or not at all gently."""
    out = copy.deepcopy(value)
    holder, key = _place(out, random)
    if holder is None:
        return random.choice(HOSTILE)
    old = holder[key]
    action = random.randrange(8)
    if action == 0:
        holder[key] = random.choice(HOSTILE)
    elif action == 1 and isinstance(holder, dict):
        del holder[key]
    elif action == 2 and isinstance(holder, dict):
        holder[random.choice(["x", "a", "Weights", "ti+", "cats", "weight_drop"])] = random.choice(HOSTILE)
    elif action == 3 and isinstance(holder, list):
        holder.insert(key, random.choice([old, 0, -1, random.choice(HOSTILE)]))
    elif action == 4 and isinstance(holder, list):
        del holder[key]
    elif action == 5 and len(holder) > 1:
        other = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(old, bool) or not isinstance(old, int | float | str):
        holder[key] = random.choice(HOSTILE)
    elif isinstance(old, str):
        holder[key] = random.choice([old + "0", old[:-1], "1" + old, old.upper(), *map(str, range(4))])
    else:
        holder[key] = random.choice([old + 1, old - 1, -old, old * 2, random.randrange(-2, 12), old + 0.5])
    return out


def _place(value: Any, random: Random) -> tuple[Any, Any]:
    """Somewhere in a JSON value: what holds it, and its key there."""
    holder, key = None, None
    while isinstance(value, dict | list) and value and (holder is None or random.random() < 0.9):
        holder = value
        key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
        value = value[key]
    return holder, key


def with_doubled_key(data: bytes, random: Random) -> bytes:
    text = data.decode("utf-8", "surrogatepass")
    lines = text.split("\n")
    at = random.randrange(1, len(lines) - 1)
    lines.insert(at, lines[at] if lines[at].endswith(",") else lines[at] + ",")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# ---------------------------------------------------------------------- LightGBM's text


def changed_text(text: str, random: Random) -> str:
    """A line or a number changed; often the sizes of trees are put right, so that only the structure is wrong."""
    lines = text.split("\n")
    for _ in range(random.choice([1, 1, 1, 2])):
        at = random.randrange(len(lines))
        key, equals, value = lines[at].partition("=")
        words = value.split(" ")
        action = random.randrange(9)
        place = random.randrange(len(words))
        if action <= 2 and equals:
            words[place] = random.choice(TOKENS)
        elif action == 3 and len(words) > 1:
            other = random.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        elif action == 4 and equals:
            words[place] = _near(words[place], random)
        elif action == 5 and equals:
            words = words[:place] if random.random() < 0.5 else [*words, *words[place:]]
        if action <= 5:
            lines[at] = f"{key}{equals}{' '.join(words)}" if equals else lines[at]
        elif action == 6:
            lines.insert(at, random.choice([random.choice(LINES), random.choice(lines)]))
        elif action == 7:
            del lines[at]
            lines = lines or [""]
        else:
            other = random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    changed = "\n".join(lines)
    return with_sizes(changed) if random.random() < 0.7 else changed


def _near(word: str, random: Random) -> str:
    try:
        return str(int(word) + random.choice([-2, -1, 1, 2]))
    except ValueError:
        return random.choice(["-" + word, word.replace(".", ""), word + "1", word.replace("e", "")])


def with_sizes(text: str) -> str:
    """LightGBM's text with tree_sizes as they are."""
    _, *trees = text.split("end of trees")[0].split("\nTree=")
    blocks = [f"Tree={tree}\n" for tree in trees[:-1]] + [f"Tree={tree}" for tree in trees[-1:]]
    sizes = " ".join(str(len(block.encode("utf-8", "surrogatepass"))) for block in blocks)
    return "\n".join(f"tree_sizes={sizes}" if line.startswith("tree_sizes=") else line for line in text.split("\n"))


# ---------------------------------------------------------------------- a case


def hostile_file(content: dict[str, Any], random: Random) -> tuple[bytes, dict[str, Any] | None]:
    """A file made from a good content, and what it claims to hold; None where it is plainly damaged."""
    action = random.randrange(10)
    if action <= 1:
        return damaged_bytes(written(content), random), None
    if action == 2:
        return with_doubled_key(written(content), random), None
    changed = copy.deepcopy(content)
    if action == 3:
        name = random.choice(list(MACHINE))
        changed["parameters"] |= {name: MACHINE[name]}
    elif action == 4:
        known = random.choice(
            [*changed["parameters"], "alpha", "notion", "k", "relevance_threshold", "missing", "booster"]
        )
        changed["parameters"][known] = random.choice(
            [*HOSTILE, nested(900), nested(50_000 if random.random() < 0.1 else 3)]
        )
    elif action == 5 or "model" not in content:
        rest = changed_json({key: value for key, value in changed.items() if key != "model"}, random)
        changed = rest if not isinstance(rest, dict) else changed | rest if len(rest) >= len(changed) - 1 else rest
    elif content["kind"] == "FairLGBMRanker":
        changed["model"] = changed_text(content["model"], random)
    else:
        model = changed_json(json.loads(content["model"]), random)
        text = json.dumps(model, ensure_ascii=False)
        changed["model"] = (
            text
            if random.random() < 0.95
            else damaged_bytes(text.encode("utf-8", "replace"), random).decode("utf-8", "replace")
        )
    bare = isinstance(changed, dict) and changed.get("version") == 2 and random.random() < 0.2
    if bare:
        changed["version"] = 1  # which has no digest
        changed.pop("digest", None)
    try:
        return written(changed, seal=not bare) if isinstance(changed, dict) else json.dumps(changed).encode(), changed
    except (RecursionError, UnicodeEncodeError):
        return b"[" * 100_000, None
