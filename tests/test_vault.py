import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from predictive_credit import vault
from predictive_credit.errors import Sealed, Tampered
from predictive_credit.records import Outcome

OUTCOMES = (
    Outcome(state_id="m/A/1/1", target="roc_auc", value=0.0123),
    Outcome(state_id="m/B/1/1", target="roc_auc", value=None, reason="one class among the held-out labels"),
)


@pytest.fixture
def key():
    return vault.study_key(vault.master_key(), "m")


def test_what_is_sealed_opens_with_its_key(key):
    assert vault.unseal(vault.seal(OUTCOMES, key, study="m"), key, study="m") == OUTCOMES


def test_sealing_is_deterministic_and_shows_nothing(key):
    sealed = vault.seal(OUTCOMES, key, study="m")
    assert sealed == vault.seal(reversed(OUTCOMES), key, study="m")
    assert b"0.0123" not in sealed
    assert b"m/A/1/1" not in sealed


def test_another_key_another_study_and_a_changed_byte_do_not_open(key):
    sealed = vault.seal(OUTCOMES, key, study="m")
    other = vault.study_key(bytes(64), "m")
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for data, with_key, study in [(sealed, other, "m"), (sealed, key, "n"), (changed, key, "m")]:
        with pytest.raises(Sealed, match="does not open with the key"):
            vault.unseal(data, with_key, study=study)


def test_the_key_is_made_once_for_its_owner_only(private_vault):
    first = vault.master_key()
    assert vault.master_key() == first
    assert len(first) == 64
    assert stat.S_IMODE((private_vault / "key").stat().st_mode) == 0o600


def test_a_damaged_key_is_one_sentence(private_vault):
    private_vault.mkdir()
    (private_vault / "key").write_bytes(b"short")
    with pytest.raises(Sealed, match="holds 5 bytes, not 64"):
        vault.master_key()


def test_commitments_hold_and_a_changed_outcome_is_named(key):
    promised = vault.commitments(OUTCOMES, key)
    salts = {o.id: vault.salt(key, o) for o in OUTCOMES}
    vault.check_commitments(OUTCOMES, salts, promised)
    moved = (Outcome(state_id="m/A/1/1", target="roc_auc", value=0.0124), OUTCOMES[1])
    with pytest.raises(Tampered, match="outcome m/A/1/1/roc_auc is not the one committed to"):
        vault.check_commitments(moved, salts, promised)
    with pytest.raises(Tampered, match="m/B/1/1"):
        vault.check_commitments(OUTCOMES[:1], salts, promised)


def test_two_targets_of_a_state_are_two_commitments(key):
    pair = [Outcome(state_id="m/A/1", target=t, value=0.5) for t in ("accuracy_pp", "log_loss")]
    promised = vault.commitments(pair, key)
    assert list(promised) == ["m/A/1/accuracy_pp", "m/A/1/log_loss"]
    assert len(set(promised.values())) == 2


def test_a_published_salt_does_not_help_to_guess_another_outcome_of_its_state(key):
    published, sealed_later = OUTCOMES[0], Outcome(state_id="m/A/1/1", target="roc_auc", value=0.0456)
    known_salt = vault.salt(key, published)
    assert vault.salt(key, sealed_later) != known_salt
    later = vault.commitments([sealed_later], key)["m/A/1/1/roc_auc"]
    guesses = (Outcome(state_id="m/A/1/1", target="roc_auc", value=i / 10_000) for i in range(1000))
    assert later not in {vault.commitment(guess, known_salt) for guess in guesses}


def test_openings_are_remembered_outcome_by_outcome():
    assert vault.opened_before(["a", "b"]) == (0, None)
    vault.log_opening(["a"], "2026-01-01")
    vault.log_opening(["a", "c"], "2026-01-02")
    assert vault.opened_before(["a", "b"]) == (1, "2026-01-01")
    assert vault.opened_before(["c", "a"]) == (2, "2026-01-01")
    assert vault.opened_before(["b"]) == (0, None)


def test_a_log_line_cut_off_by_a_kill_is_passed_over(private_vault):
    vault.log_opening(["a"], "2026-01-01")
    with (private_vault / "openings.jsonl").open("ab") as log:
        log.write(b'{"outcomes":["b"')
    assert vault.opened_before(["a", "b"]) == (1, "2026-01-01")
    vault.log_opening(["b"], "2026-01-02")
    assert vault.opened_before(["b"]) == (1, "2026-01-02")


def test_many_processes_at_first_use_agree_on_one_key(private_vault):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: vault.master_key(), range(32)))
    assert len(keys) == 1
    assert [p.name for p in private_vault.iterdir()] == ["key"]
