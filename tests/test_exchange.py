"""Credit by generator and forecaster: which cells share a table, what they are called, what they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from predictive_credit.errors import BadSource
from predictive_credit.records import Outcome
from predictive_credit.report import exchange, words
from predictive_credit.report.exchange import Cell, Party
from predictive_credit.report.tables import Table
from predictive_credit.report.view import StudyView
from tests.samples import controlled_view, own_view, study_view


@cache
def molecular() -> StudyView:
    return study_view(endpoints=2, draws=100)


def changed(view: StudyView, **params: Any) -> StudyView:
    """The view under other frozen params: `forecaster={...}` changes these keys of the forecaster."""
    frozen = dict(view.freeze["params"])
    for key, value in params.items():
        frozen[key] = {**frozen[key], **value} if isinstance(value, Mapping) else value
    return replace(view, freeze={**view.freeze, "params": frozen})


def a_cell(generator: str = "playbook", forecaster: str = "smollm2", where: str = "a") -> Cell:
    view = changed(molecular(), agent={"name": generator}, forecaster={"name": forecaster})
    return exchange.cell(view, where)


def with_gain(cell: Cell, value: float) -> Cell:
    """The cell with another S-M gain in what its rule reads."""
    of = cell.contrasts["roc_auc"]["interval_score"]
    gain = of["S-M"] | {"mean": value, "lower": value - 0.01, "upper": value + 0.01}
    return replace(cell, contrasts={"roc_auc": {"interval_score": of | {"S-M": gain}}})


def columns_of(table: Table) -> dict[str, list[str]]:
    return {name: [row[k] for row in table.rows] for k, name in enumerate(table.columns)}


class TestOneTable:
    def test_a_row_holds_the_studys_own_figures(self):
        view = controlled_view(regimes=2, draws=100)
        found = exchange.rows(exchange.populations([exchange.cell(view, "here")]))
        assert [row["target"] for row in found] == [t.name for t in view.study.targets]
        for row in found:
            assert tuple(row) == exchange.columns()
            for measure in ("point_error", "interval_score"):
                contrast = view.metrics["contrasts"][row["target"]][measure]["S-M"]
                for bound in ("mean", "lower", "upper", "t_lower", "t_upper"):
                    assert row[f"{measure} S-M {bound}"] == contrast[bound]
            for context in "DM":
                assert row[f"drift {context}"] == view.metrics["contexts"][row["target"]][context]["drift"]
            assert (row["units"], row["fallbacks"]) == (len(view.answers), 1)
            assert (row["commitment"], row["where"]) == ("passed", "here")
            assert row["decision"] == view.metrics["decision"]["status"]

    def test_the_matrix_has_generators_as_rows_and_says_which_cell_was_not_run(self):
        cells = [
            with_gain(a_cell("pro", "flash", "1"), 0.25),
            with_gain(a_cell("pro", "priors", "2"), -0.5),
            with_gain(a_cell("flash", "priors", "3"), 0.125),
        ]
        (population,) = exchange.populations(cells)
        listing, matrix = exchange.tables(population)
        assert [row[:2] for row in listing.rows] == [
            ("flash", "priors"), ("pro", "flash"), ("pro", "priors"),
        ]  # fmt: skip
        assert matrix.columns == ("generator", "flash", "priors")
        assert matrix.rows == (
            ("flash", exchange.NOT_RUN, "+0.1250 [+0.1150, +0.1350]"),
            ("pro", "+0.2500 [+0.2400, +0.2600]", "−0.5000 [−0.5100, −0.4900]"),
        )

    def test_a_context_that_was_not_asked_is_no_zero_and_stands_in_the_same_table(self):
        whole = a_cell("pro")
        asked = {"D-M": whole.contrasts["roc_auc"]["interval_score"]["D-M"]}
        config = {**molecular().freeze["params"]["studies"]["molecular"], "contexts": ["D", "M"]}
        fewer = exchange.cell(changed(molecular(), studies={"molecular": config}), "b")
        fewer = replace(fewer, contrasts={"roc_auc": {"interval_score": asked}})
        (population,) = exchange.populations([whole, fewer])
        shown = columns_of(exchange.tables(population)[0])[f"{words.pair('S-M')} gain"]
        assert shown[0] == words.NOT_ASKED
        assert shown[1].startswith(("+", words.MINUS))

    def test_another_measure_is_called_exploratory(self):
        (population,) = exchange.populations([a_cell()])
        (read,), (other,) = exchange.tables(population), exchange.tables(population, "point_error")
        assert "interval score (which the rule reads)" in str(read.note)
        assert "point error (exploratory)" in str(other.note)
        assert read.rows != other.rows


class TestWhatCellsShare:
    @pytest.mark.parametrize("what", ["outcomes", "states", "seed", "settings"])
    def test_cells_that_do_not_share_it_stand_in_tables_of_their_own(self, what):
        view = molecular()
        if what == "outcomes":
            first, *others = view.outcomes
            moved = Outcome(state_id=first.state_id, target=first.target, value=0.0123)
            other = replace(view, outcomes=(moved, *others))
        elif what == "states":
            one, *more = view.states
            planned = replace(one, intervention=replace(one.intervention, text="Something else."))
            other = replace(view, states=(planned, *more))
        elif what == "seed":
            other = changed(view, seed=8)
        else:
            config = {**view.freeze["params"]["studies"]["molecular"], "donor": "another"}
            other = changed(view, studies={"molecular": config})
        found = exchange.populations([exchange.cell(view, "a"), exchange.cell(other, "b")])
        assert [len(population.cells) for population in found] == [1, 1]
        assert len({population.heading for population in found}) == 2
        (said,) = exchange.apart(found)
        assert said.startswith(f"molecular comes in 2 tables that differ in {what}: ")

    def test_cells_that_share_everything_need_no_word(self):
        found = exchange.populations([a_cell("pro"), a_cell("flash")])
        assert len(found) == 1
        assert exchange.apart(found) == []

    def test_the_same_pair_with_another_result_is_refused_by_both_places(self):
        cells = [a_cell(where="multirun/0"), with_gain(a_cell(where="multirun/1"), 0.5)]
        with pytest.raises(BadSource) as refusal:
            exchange.populations(cells)
        assert str(refusal.value) == (
            "molecular (quick scale): playbook read by smollm2 stands twice with different results, in "
            "multirun/0 and in multirun/1; leave one of the two out"
        )

    def test_the_same_pair_with_the_same_result_is_one_cell(self):
        (population,) = exchange.populations([a_cell(where="project"), a_cell(where="bundle")])
        assert [one.where for one in population.cells.values()] == ["project"]


class TestNames:
    def test_settings_that_share_a_name_are_told_apart_by_the_fewest_that_differ(self):
        parties = [
            Party(name="priors", settings=(("kind", "priors"), ("point", p), ("resolved", f"{p} of own")))
            for p in ("zero", "mean")
        ]
        other = Party(name="smollm2", settings=(("kind", "llama_cpp"),))
        named = exchange.labels([*parties, other, parties[0]])
        assert list(named.values()) == ["priors (point=zero)", "priors (point=mean)", "smollm2"]

    def test_two_keys_are_named_where_no_single_one_tells_all_apart(self):
        values = [("a", "0"), ("a", "1"), ("b", "0")]
        parties = [Party(name="x", settings=(("model", m), ("temperature", t))) for m, t in values]
        assert [*exchange.labels(parties).values()] == [f"x (model={m}, temperature={t})" for m, t in values]

    def test_how_a_model_is_reached_makes_it_no_other_model(self):
        views = [changed(molecular(), forecaster={"concurrency": n, "deadline_s": 60.0 * n}) for n in (1, 2)]
        (population,) = exchange.populations([exchange.cell(view, "a") for view in views])
        assert list(population.cells) == [("playbook", "smollm2")]

    def test_another_model_that_answered_under_one_name_is_another_forecaster(self):
        view = molecular()
        moved = replace(view, freeze={**view.freeze, "models": {"resolved": ["newer"]}})
        (population,) = exchange.populations([exchange.cell(view, "a"), exchange.cell(moved, "b")])
        resolved = view.freeze["models"]["resolved"][0]
        assert list(population.cells) == [
            ("playbook", f"smollm2 (resolved={resolved})"), ("playbook", "smollm2 (resolved=newer)"),
        ]  # fmt: skip

    def test_who_reads_cards_out_of_texts_is_part_of_the_generator_where_somebody_does(self):
        views = {
            "controlled": controlled_view(regimes=2, draws=100), "molecular": molecular(),
        }  # fmt: skip
        found = {}
        for name, view in views.items():
            readers = [
                replace(view, freeze={
                    **view.freeze, "params": {**view.freeze["params"], "extractor": {"name": reader}}
                })
                for reader in ("rules", "smollm2")
            ]  # fmt: skip
            (population,) = exchange.populations([exchange.cell(view, "a") for view in readers])
            found[name] = [generator for generator, _ in population.cells]
        assert found == {
            "controlled": ["playbook (extractor.name=rules)", "playbook (extractor.name=smollm2)"],
            "molecular": ["playbook"],
        }

    def test_given_explanations_are_of_no_agent_and_two_files_are_two_generators(self):
        view = own_view(groups=2)
        assert exchange.generator(view).name == "given"
        first, *others = view.explanations
        other = replace(view, explanations=(replace(first, text="Another account."), *others))
        (population,) = exchange.populations([exchange.cell(view, "a"), exchange.cell(other, "b")])
        assert all(generator.startswith("given (texts=") for generator, _ in population.cells)
        assert len(population.cells) == 2


class TestNotes:
    def test_a_row_whose_texts_were_written_anew_for_each_forecaster_says_so(self):
        view = molecular()
        first, *others = view.explanations
        anew = replace(view, explanations=(replace(first, text="Asked again."), *others))
        cells = [
            exchange.cell(changed(v, forecaster={"name": name}), name)
            for v, name in ((view, "flash"), (anew, "pro"))
        ]
        note = exchange.tables(exchange.populations(cells)[0])[-1].note
        assert "The explanations of playbook are not the same in all columns" in str(note)
        again = exchange.tables(exchange.populations([a_cell(forecaster="pro"), a_cell()])[0])[-1].note
        assert "not the same in all columns" not in str(again)

    def test_a_cell_that_was_planned_after_an_opening_is_post_outcome(self):
        view = molecular()
        check = {"status": "failed", "planned_after_opening": "2026-03-01 (12 of 12 outcomes)"}
        metrics = {**view.metrics, "checks": {**view.metrics["checks"], "commitment": check}}
        cell = exchange.cell(replace(view, metrics=metrics), "a")
        assert (cell.commitment, cell.planned_after) == ("post-outcome", check["planned_after_opening"])
        (population,) = exchange.populations([cell, a_cell("pro")])
        assert "before 1 of the 2 cells was planned" in str(exchange.tables(population)[-1].note)
        broken = {**metrics, "checks": {"commitment": {"status": "failed", "planned_after_opening": None}}}
        assert exchange.cell(replace(view, metrics=broken), "a").commitment == "failed"


class TestText:
    def test_columns_are_aligned_in_plain_characters(self):
        table = Table(
            caption="Gains", columns=("generator", "D\u00a0\u2212\u00a0M gain"), note="Read so.",
            rows=(("pro", "\u22120.5"), ("a longer name", "+0.25")),
        )  # fmt: skip
        assert exchange.text(table).splitlines() == [
            "Gains",
            "generator      D - M gain",
            "pro                  -0.5",
            "a longer name       +0.25",
            "Read so.",
        ]


class TestPage:
    def test_a_page_of_one_run_each_has_no_such_table(self):
        views = [molecular(), own_view(groups=2)]
        assert exchange.on_page(views, ["a", "b"]) == ()

    def test_two_runs_of_one_population_have_one(self):
        views = [molecular(), changed(molecular(), forecaster={"name": "pro"}), own_view(groups=2)]
        listing, matrix = exchange.on_page(views, ["a", "b", "c"])
        assert [row[:2] for row in listing.rows] == [("playbook", "pro"), ("playbook", "smollm2")]
        assert matrix.columns == ("generator", "pro", "smollm2")

    def test_two_results_of_one_pair_leave_the_page_whole_and_say_why_there_is_no_table(self):
        view = molecular()
        other = replace(view, metrics={**view.metrics, "contrasts": {}})
        (said,) = exchange.on_page([view, other], ["a", "b"])
        assert said.rows == ()
        assert "stands twice with different results, in a and in b" in str(said.note)
