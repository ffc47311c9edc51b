import re

import pytest

from predictive_credit.agents import model_agent
from predictive_credit.records import Target
from tests.trials import ONE, TWO


def test_the_molecular_card_is_held_by_the_grammar_it_always_had():
    assert model_agent.card_grammar(ONE).splitlines() == [
        'root ::= "Direction: " verb "\\nTarget: " target "\\nIntermediate: " line "\\nRegime: " line rest',
        'rest ::= "\\nFalsifier: " line "\\nCounterfactual: " line',
        'target ::= "ROC AUC will " verb " by " size " (80% interval: minus " size ", plus " size ")"',
        'verb ::= "increase" | "decrease"',
        'size ::= "0.0" [0-9] [0-9] [0-9]',
        r"line ::= [A-Za-z] [^\n<>]{10,160}",
    ]


@pytest.mark.parametrize("targets", [ONE, TWO])
def test_every_rule_that_a_card_grammar_refers_to_is_there(targets: tuple[Target, ...]):
    rules = dict(line.split(" ::= ", 1) for line in model_agent.card_grammar(targets).splitlines())
    for body in rules.values():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[^}]*\}', "", body)
        assert set(re.findall(r"[a-z][\w-]*", bare)) <= set(rules)


def test_the_direction_of_several_targets_is_free_words():
    assert model_agent.card_grammar(TWO).startswith('root ::= "Direction: " line "')
