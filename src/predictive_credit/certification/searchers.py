"""A scripted searcher for each task. This file runs by itself, with the standard library alone.

A session starts it in a directory that holds what the agent may know, `.dcp/packet.json`, and nothing
else; it leaves its action in `.dcp/action.json` and its candidate in `candidate.json`. The same policy
serves the main run, challengers, branches and positive controls: what differs is what they are told.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PACKET = Path(".dcp/packet.json")
ACTION = Path(".dcp/action.json")
CANDIDATE = Path("candidate.json")

Packet = Mapping[str, Any]
Choice = tuple[Any, Any]  # a plan to measure, or None to finish; and the candidate so far


def act(packet: Packet) -> tuple[Any, Any]:
    """The session's action and candidate."""
    unread = [url for url in packet["sites"] if url not in _fetched(packet)]
    if unread:
        return {"schema": "dcp_action_v1", "action": "web_fetch", "payload": {"url": unread[0]}}, None
    plan, candidate = POLICIES[packet["task"]](packet)
    if "known_best" in packet["first"]:
        candidate = packet["first"]["known_best"]
    if (
        plan is not None
        and packet["experiments_left"] > 0
        and packet["turns_left"] > 1
        and not _blind(packet)
    ):
        return {"schema": "dcp_action_v1", "action": "experiment", "payload": plan}, candidate
    return {"schema": "dcp_action_v1", "action": "finish", "payload": {}}, candidate


def _fetched(packet: Packet) -> list[str]:
    return [t["payload"]["url"] for t in packet["history"] if t["action"] == "web_fetch"]


def _experiments(turns: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [turn for turn in turns if turn["action"] == "experiment"]


def _blind(packet: Packet) -> bool:
    """Whether an experiment was answered without a number: asking again would tell no more."""
    return any(not _numbers(turn) for turn in _experiments(packet["history"]))


def _numbers(turn: Mapping[str, Any]) -> dict[str, float]:
    """What an answer says, where it says a number."""
    told = {}
    for reading in turn["observation"].get("readings", ()):
        try:
            told[reading["of"]] = float(reading["value"])
        except ValueError:
            continue
    return told


def _told(packet: Packet) -> list[tuple[Any, dict[str, float]]]:
    """Every plan with its readings: from notes handed over, and from this episode."""
    turns = _experiments([*packet["notes"], *packet["history"]])
    return [(turn["payload"], _numbers(turn)) for turn in turns]


def _indexes(packet: Packet) -> Choice:
    """Four families at a time, each with its matching index, until the four hot ones are found."""
    families = packet["background"]["families"]
    cuts = {
        index["kind"]: cut
        for plan, told in _told(packet)
        for index, cut in zip(plan["indexes"], told.values(), strict=False)
    }
    order = sorted(families)
    random.Random(packet["draw"]).shuffle(order)
    hot = [kind for kind, cut in cuts.items() if cut > 0.1][:4]
    open_kinds = [kind for kind in order if kind not in cuts]
    pick = [*hot, *open_kinds, *order][:4] if len(hot) < 4 else hot
    plan = (
        None
        if len(hot) == 4 or _blind(packet)
        else {"indexes": [_index(kind, families) for kind in open_kinds[:4]]}
    )
    return plan, {"indexes": [_index(kind, families) for kind in dict.fromkeys(pick)]}


def _index(kind: str, families: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "columns": families[kind]}


def _recipe(packet: Packet) -> Choice:
    """One plate around a drawn anchor; then the best level of each control, guesses where none is read."""
    rng = random.Random(packet["draw"])
    controls = sorted(packet["background"]["schema"]["candidate"]["recipe"])
    recipe = {name: rng.randrange(1, 8) for name in controls}
    plan = {"anchor": recipe}
    for asked, told in _told(packet):
        anchor = asked["anchor"]
        if "anchor" in told:
            wells = {f"{name}={anchor[name]}": told["anchor"] for name in controls} | told
            recipe = {name: _best_level(name, wells) for name in controls}
    return None if _blind(packet) else plan, {"recipe": recipe}


def _best_level(name: str, wells: Mapping[str, float]) -> int:
    yields = [wells.get(f"{name}={level}", 0.0) for level in range(8)]
    return yields.index(max(yields))


def _gains(packet: Packet) -> Choice:
    """Probe four controls at a time; then the gains read, and balanced signs for the rest."""
    rng = random.Random(packet["draw"])
    gains = {name: int(value) for name, value in packet["first"]["gains"].items()}
    hidden = sorted(set(packet["background"]["schema"]["candidate"]["gains"]) - set(gains))
    for _, told in _told(packet):
        gains |= {name: int(value) for name, value in told.items()}
    rng.shuffle(hidden)
    unknown = [name for name in hidden if name not in gains]
    plus = len(hidden) // 2 - sum(gains[name] > 0 for name in hidden if name in gains)
    guessed = gains | {name: 1 if rank < plus else -1 for rank, name in enumerate(unknown)}
    plan = {"controls": unknown[:4]} if unknown and not _blind(packet) else None
    return plan, {"gains": guessed}


def _packing(packet: Packet) -> Choice:
    """A new packing each session, the best of a few noisy greedy ones; the best tried so far is kept.

    What a packing is worth can be computed, so a measurement that tells nothing does not matter.
    """
    items = packet["background"]["items"]
    capacity = packet["background"]["capacity"]
    made = [plan["items"] for plan, _ in _told(packet)]
    rng = random.Random(f"{packet['draw']}:{len(made)}")
    starts = [_greedy(rng, items, capacity) for _ in range(4)]
    improved = [_improve(_improve(start, items, capacity), items, capacity) for start in starts]
    new = max(improved, key=lambda names: _worth(names, items))
    best = max(made or [new], key=lambda names: _worth(names, items))
    return {"items": new}, {"items": sorted(best)}


def _greedy(rng: random.Random, items: Mapping[str, Any], capacity: Sequence[int]) -> list[str]:
    """Items by value for what they need, the ratio blurred by chance, as long as they fit."""
    noisy = {name: _density(items[name], capacity) * math.exp(rng.gauss(0, 0.25)) for name in sorted(items)}
    chosen: list[str] = []
    room = list(capacity)
    for name in sorted(noisy, key=lambda n: -noisy[n]):
        if _fits(items[name], room):
            chosen.append(name)
            room = [left - need for left, need in zip(room, items[name][1:], strict=True)]
    return chosen


def _density(row: Sequence[int], capacity: Sequence[int]) -> float:
    value, *needs = row
    return value / sum(need / most for need, most in zip(needs, capacity, strict=True))


def _worth(names: Sequence[str], items: Mapping[str, Any]) -> int:
    return sum(items[name][0] for name in names)


def _fits(row: Sequence[int], room: Sequence[int]) -> bool:
    return all(need <= left for need, left in zip(row[1:], room, strict=True))


def _improve(chosen: list[str], items: Mapping[str, Any], capacity: Sequence[int]) -> list[str]:
    """Each chosen item makes way for the dearest other that fits, if dearer; then the room is filled."""
    left = [most - sum(items[n][r + 1] for n in chosen) for r, most in enumerate(capacity)]
    for gone in list(chosen):
        room = [has + need for has, need in zip(left, items[gone][1:], strict=True)]
        others = [n for n in sorted(items) if n not in chosen and _fits(items[n], room)]
        best = max(others, key=lambda n: items[n][0], default=gone)
        if items[best][0] > items[gone][0]:
            chosen = [best if name == gone else name for name in chosen]
            left = [has - need for has, need in zip(room, items[best][1:], strict=True)]
    for name in sorted(set(items) - set(chosen), key=lambda n: (-items[n][0], n)):
        if _fits(items[name], left):
            chosen.append(name)
            left = [has - need for has, need in zip(left, items[name][1:], strict=True)]
    return chosen


POLICIES: Mapping[str, Callable[[Packet], Choice]] = {
    "sqlite": _indexes, "catalyst": _recipe, "device": _gains, "knapsack": _packing,
}  # fmt: skip


def main() -> None:
    """One session, in the current directory."""
    action, candidate = act(json.loads(PACKET.read_text()))
    if candidate is not None:
        CANDIDATE.write_text(json.dumps(candidate, sort_keys=True))
    ACTION.write_text(json.dumps(action, sort_keys=True))


if __name__ == "__main__":
    main()
