"""Sealed outcomes: written once, committed to in public, read only after the freeze.

AES-SIV is deterministic (equal outcomes and key give equal bytes), so the sealed artifact can be
versioned. The key lives outside the tree that DVC and git track. Each outcome's salt is derived
from the key: it stays secret until the opening, because a rounded ROC AUC change alone could be
guessed from its hash.

Reference: RFC 5297 (AES-SIV); RFC 5869 (HKDF).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from predictive_credit import canonical
from predictive_credit.errors import Sealed, Tampered
from predictive_credit.records import Outcome

KEY_BYTES = 64  # AES-256-SIV takes two keys of 256 bits
MAGIC = b"predictive-credit sealed outcomes 1\n"


def home() -> Path:
    """The folder of keys and of the log of openings, never inside a project."""
    default = Path.home() / ".local" / "share" / "predictive-credit"
    return Path(os.environ.get("PREDICTIVE_CREDIT_VAULT", default))


def master_key(folder: Path | None = None) -> bytes:
    """This user's key of 64 bytes, made at first use with owner-only permissions."""
    path = (folder or home()) / "key"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        # Written aside and linked: of two processes that start together one key wins, and no kill
        # leaves half of one. A temporary file is readable by its owner only.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            os.unlink(temporary)
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise Sealed(
            f"the vault's key {path} holds {len(key)} bytes, not {KEY_BYTES}; restore it, or move it "
            "away and run the execute stage again to seal under a new key"
        )
    return key


def study_key(master: bytes, study: str) -> bytes:
    """The 64-byte key of one study, derived from the user's key."""
    info = f"predictive-credit/{study}".encode()
    return HKDF(algorithm=SHA256(), length=64, salt=None, info=info).derive(master)


def salt(key: bytes, outcome: Outcome) -> str:
    """The secret salt of one outcome's commitment: 32 hexadecimal digits.

    It depends on the value too: a salt that was published with one outcome of a state must not help
    to guess another outcome of the same state, sealed later.
    """
    return hmac.new(key, b"salt/" + canonical.encode(outcome), hashlib.sha256).hexdigest()[:32]


def late_token(key: bytes, description: str, intervention: str, target: str) -> str:
    """The name under which an outcome that came later is logged: its situation, whatever its value."""
    situation = canonical.encode([description, intervention, target])
    return hmac.new(key, b"late/" + situation, hashlib.sha256).hexdigest()


def commitment(outcome: Outcome, outcome_salt: str) -> str:
    """Salted SHA-256 of one outcome."""
    return canonical.digest({"outcome": outcome, "salt": outcome_salt})


def commitments(outcomes: Iterable[Outcome], key: bytes) -> dict[str, str]:
    """One salted SHA-256 for each outcome, by its id, `state/target`."""
    return {o.id: commitment(o, salt(key, o)) for o in outcomes}


def seal(outcomes: Iterable[Outcome], key: bytes, *, study: str) -> bytes:
    """The encrypted, authenticated outcomes."""
    ordered = sorted(outcomes, key=lambda o: o.id)
    return MAGIC + AESSIV(key).encrypt(canonical.encode(ordered), [study.encode()])


def unseal(sealed: bytes, key: bytes, *, study: str) -> tuple[Outcome, ...]:
    """The outcomes again. Raises Sealed if the key is another's or a byte was changed."""
    if not sealed.startswith(MAGIC):
        raise Sealed(f"{study}: outcomes.sealed is not a sealed file; run the execute stage again")
    try:
        plain = AESSIV(key).decrypt(sealed[len(MAGIC) :], [study.encode()])
    except InvalidTag:
        raise Sealed(
            f"{study}: outcomes.sealed does not open with the key in {home()}; it was sealed "
            "under another key or changed since; restore the key, or run the execute stage again"
        ) from None
    return tuple(Outcome(**row) for row in json.loads(plain))


def check_commitments(
    outcomes: Iterable[Outcome], salts: Mapping[str, str], promised: Mapping[str, str]
) -> None:
    """Raise Tampered unless every outcome is the one that was committed to, and none is missing."""
    seen = {o.id: commitment(o, salts[o.id]) for o in outcomes}
    for outcome_id in sorted(seen.keys() | promised.keys()):
        if seen.get(outcome_id) != promised.get(outcome_id):
            raise Tampered(f"the outcome {outcome_id} is not the one committed to before the freeze")


def log_opening(commitments_opened: Iterable[str], time_utc: str, folder: Path | None = None) -> None:
    """Remember, outside the project, that the outcomes behind these commitments have been opened."""
    path = (folder or home()) / "openings.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = {"time_utc": time_utc, "outcomes": sorted(commitments_opened)}
    with path.open("ab") as file:
        # The line end before keeps this entry whole after one that a kill cut off.
        file.write(b"\n" + canonical.encode(entry) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def opened_before(committed: Iterable[str], folder: Path | None = None) -> tuple[int, str | None]:
    """How many of these outcomes were opened on this machine already, and when the first was.

    Outcome by outcome: a full run after a quick one holds some that are known. What is planned or
    frozen after that is a post-outcome comparison, and its ledger says so.
    """
    path = (folder or home()) / "openings.jsonl"
    asked, seen, first = set(committed), set[str](), None
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:  # cut off by a kill; the opening it began was not finished
            continue
        if found := asked.intersection(entry.get("outcomes", ())):
            seen |= found
            first = first or str(entry["time_utc"])
    return len(seen), first
