"""The replacement ledger: which started pairs are analysed, and whether any was replaced improperly.

Pairs are listed in the order they started. A pair lost to infrastructure, whatever its outcome would
have been, may be replaced by the pair started right after it; everything started stays listed, and
the last pair of each chain is analysed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from predictive_credit.certification.digests import FEEDBACK_ARMS, SHAM_ARMS
from predictive_credit.certification.records import Branch, Outcome, Pair, Registration, ShamPair
from predictive_credit.certification.registration import REPLACEMENT_POLICY, is_integer

P = TypeVar("P", bound=Pair)


def branches(pair: Pair) -> tuple[Branch, Branch]:
    """The two arms of a pair: truthful and neutral, or reference and proposed."""
    first, second = (SHAM_ARMS if isinstance(pair, ShamPair) else FEEDBACK_ARMS).values()
    return getattr(pair, first), getattr(pair, second)


def is_lost(pair: Pair) -> bool:
    """Whether infrastructure took the pair, independently of its outcome, before any result."""
    lost = [b for b in branches(pair) if b.outcome == Outcome.INFRASTRUCTURE]
    return bool(lost) and all(
        b.infrastructure_outcome_independent is True and b.utility is None and b.per_unit is None
        for b in lost
    )


def touches_infrastructure(pair: Pair) -> bool:
    """Whether infrastructure failed in either arm, provably independent of the outcome or not."""
    return any(b.outcome == Outcome.INFRASTRUCTURE for b in branches(pair))


def lost_by_arm(pairs: Sequence[Pair]) -> Counter[str]:
    """In how many lost pairs infrastructure took this arm; it may have taken both of one pair."""
    return Counter(
        arm
        for pair in pairs
        if is_lost(pair)
        for arm in (SHAM_ARMS if isinstance(pair, ShamPair) else FEEDBACK_ARMS).values()
        if getattr(pair, arm).outcome == Outcome.INFRASTRUCTURE
    )


def terminal(pairs: Sequence[P]) -> tuple[P, ...]:
    """The last pair of every chain, in the order their first pairs started."""
    return tuple(chain[-1] for chain in _chains(pairs, _children(pairs)))


def _children(pairs: Sequence[P]) -> dict[str, P]:
    """Each replaced pair's replacement: the first one listed after it."""
    known: set[str] = set()
    children: dict[str, P] = {}
    for p in pairs:
        if p.replacement_of and p.replacement_of in known:
            children.setdefault(p.replacement_of, p)
        known.add(p.pair_id)
    return children


def _chains(pairs: Sequence[P], children: Mapping[str, P]) -> list[list[P]]:
    chains = []
    for root in (p for p in pairs if not p.replacement_of):
        chain = [root]
        while chain[-1].pair_id in children and len(chain) <= len(pairs):
            chain.append(children[chain[-1].pair_id])
        chains.append(chain)
    return chains


def ledger_errors(registration: Registration, pairs: Sequence[Pair], kind: str) -> tuple[list[str], int]:
    """Defects of a ledger of `feedback` or `sham` pairs, and how many replacements it lists."""
    registered = getattr(registration, f"registered_n_{kind}_pairs")
    limit = getattr(registration, f"max_{kind}_pair_replacements")
    policy, label = registration.gate3_pair_replacement_policy, f"{kind} pairs"
    links = [p for p in pairs if isinstance(p.replacement_of, str) and p.replacement_of]
    errors = [*_terms(policy, registered, limit, label), *_rows(pairs, policy, label)]
    if len({p.pair_id for p in pairs}) != len(pairs):
        errors.append(f"{label} pair ids are duplicated")
    if len({p.replacement_of for p in links}) != len(links):
        errors.append(f"{label} failed pair has more than one replacement")
    if is_integer(limit, least=0) and len(links) > limit:
        errors.append(f"{label} replacements {len(links)} exceed registered maximum {limit}")
    errors += _slots(pairs, registered, limit, len(links), label)
    return errors, len(links)


def _terms(policy: Any, registered: Any, limit: Any, label: str) -> Iterator[str]:
    if policy not in ("none", REPLACEMENT_POLICY):
        yield f"{label} replacement policy is unsupported"
    if not is_integer(registered, least=1):
        yield f"{label} registered N is malformed"
    if not is_integer(limit, least=0):
        yield f"{label} replacement limit is malformed"


def _rows(pairs: Sequence[Pair], policy: Any, label: str) -> Iterator[str]:
    earlier: dict[str, int] = {}
    for k, p in enumerate(pairs):
        if not isinstance(p.pair_id, str) or not p.pair_id:
            yield f"{label}[{k}] pair_id is malformed"
        if not isinstance(p.replacement_of, str):
            yield f"{label}[{k}].replacement_of must be a string"
        elif p.replacement_of:
            yield from _link(pairs, k, earlier.get(p.replacement_of), policy, f"{label}[{k}]")
        earlier[p.pair_id] = k


def _link(pairs: Sequence[Pair], k: int, parent: int | None, policy: Any, label: str) -> Iterator[str]:
    if policy == "none":
        yield f"{label} replacement was not registered"
    if parent is None:
        yield f"{label} replacement_of must point to an earlier pair"
        return
    if parent != k - 1:
        yield f"{label} replacement must immediately follow its failed parent"
    if not is_lost(pairs[parent]):
        yield f"{label} replaces a pair without independently attested infrastructure attrition"


def _slots(pairs: Sequence[Pair], registered: Any, limit: Any, replaced: int, label: str) -> Iterator[str]:
    chains = _chains(pairs, _children(pairs))
    if len(chains) != registered:
        yield f"{label} original pair slots {len(chains)} != registered N={registered}"
    if sum(map(len, chains)) != len(pairs):
        yield f"{label} replacement ledger contains an orphaned pair"
    if len(chains) != registered:
        yield f"{label} terminal pair slots {len(chains)} != registered N={registered}"
    if is_integer(limit, least=0) and replaced < limit and any(is_lost(chain[-1]) for chain in chains):
        yield (
            f"{label} stopped with replaceable infrastructure attrition before the registered "
            "replacement allowance was exhausted"
        )
