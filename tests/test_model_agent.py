import re

import pytest

from predictive_credit.agents import model_agent
from predictive_credit.agents.model_agent import ModelAgent
from predictive_credit.records import Prompt, Reply, Source, Target
from tests.trials import ONE, TWO, prompt, reply, state


class Parrot:
    """A model that says what it was asked."""

    name = "parrot"
    is_closed = False

    def answer(self, prompt: Prompt) -> Reply:
        return reply(prompt.user)

    def close(self) -> None:
        self.is_closed = True


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


@pytest.mark.parametrize("source", ["elicited", "ordinary"])
def test_what_the_model_writes_is_its_reply_and_closing_closes_it(source: Source):
    model = Parrot()
    author = ModelAgent(model)
    assert author.name == "parrot"
    assert author.write(state(), source, prompt("Why?")).text == "Why?"
    author.close()
    assert model.is_closed
