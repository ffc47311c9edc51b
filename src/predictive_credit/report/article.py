"""What a tab beside the studies, and a page of its own, are made of: texts, figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from predictive_credit.report.page import environment, policy
from predictive_credit.report.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A heading with what stands under it, in this order; what is empty is left out."""

    heading: str = ""
    text: tuple[str, ...] = ()
    figures: tuple[Markup, ...] = ()
    kind: str = "narrow"
    tables: tuple[Table, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the article. Its `prefix` starts every id in it."""

    prefix: str
    title: str
    lead: tuple[str, ...]
    parts: tuple[Part, ...]


def section(told: Section) -> str:
    """A section's HTML."""
    return environment().get_template("section.html.j2").render(s=told)


def summary(
    *,
    prefix: str,
    eyebrow: str,
    headline: str,
    lead: str,
    verdicts: Table,
    limits_heading: str,
    limits: Iterable[str],
) -> str:
    """The first section, HTML: its heading is `prefix`-title; then a table, and how far it does not reach."""
    return (
        environment()
        .get_template("summary.html.j2")
        .render(
            prefix=prefix, eyebrow=eyebrow, headline=headline, lead=lead, verdicts=verdicts,
            limits_heading=limits_heading, limits=tuple(limits),
        )
    )  # fmt: skip


def document(title: str, sections: Sequence[str], *, question: str, version: str) -> str:
    """A page of its own that asks nothing of a network. The same sections give the same bytes."""
    style = (files(__package__) / "page.css").read_text(encoding="utf-8")
    return (
        environment()
        .get_template("document.html.j2")
        .render(
            title=title, sections=[Markup(s) for s in sections], question=question, version=version,
            style=Markup(style), policy=policy(style, ""),
        )
    )  # fmt: skip
