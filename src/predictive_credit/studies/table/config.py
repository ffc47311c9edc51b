"""What a user declares of a table: its columns, how donors are found, and the targets with their ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from predictive_credit.config import STRICT, StudyConfig
from predictive_credit.records import Context, Target

DonorPolicy = Literal["same_cluster", "other_cluster", "column"]
Key = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=40)]
Column = Annotated[str, Field(min_length=1)]
# Stands inside a forecast's sentence and its grammar, where a quote or a line end would break out.
Words = Annotated[str, Field(pattern=r'^[^"\\<>\x00-\x1f\x7f]+$', max_length=60)]
Suffix = Annotated[str, Field(pattern=r'^[^"\\<>\x00-\x1f\x7f]*$', max_length=60)]

RESERVED = ("study", "scale", "published")  # keys that metrics files hold beside the targets
LARGE_SHARE = 0.01  # of the larger bound: 1 percentage point of 100, .01 of a ROC AUC


@dataclass(config=STRICT, kw_only=True, frozen=True)
class TableTarget:
    """One number that is forecast: its column, its wording, and the range that no outcome leaves."""

    name: Key  # in files and metrics
    column: Column
    phrase: Words  # how a sentence names it: `Accuracy will increase by ...`
    unit: Words
    form: Literal["change", "level"]
    decimals: Annotated[int, Field(ge=0, le=8)]
    lower: Annotated[float, Field(allow_inf_nan=False)]
    upper: Annotated[float, Field(allow_inf_nan=False)]
    suffix: Suffix | None = None  # None: a space and the unit
    large: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None  # None: see LARGE_SHARE
    better: Literal["higher", "lower"] = "higher"  # what `improves` and `worsens` mean of it

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name in RESERVED:
            raise ValueError(f"a target cannot be called {name}, which metrics files use themselves")
        return name

    @field_validator("upper")
    @classmethod
    def _range_holds_something(cls, upper: float, info: ValidationInfo) -> float:
        lower, decimals = info.data.get("lower"), info.data.get("decimals")
        if lower is not None and not lower < upper:
            raise ValueError(f"the range [{lower:g}, {upper:g}] holds nothing; lower is below upper")
        if lower is not None and decimals is not None and (upper - lower) * 10**decimals < 10:
            raise ValueError(
                f"{decimals} decimals tell fewer than ten values apart in [{lower:g}, {upper:g}]; "
                "give more decimals or another unit"
            )
        return upper

    def target(self) -> Target:
        """The core's record of this target."""
        size = max(abs(self.lower), abs(self.upper))
        return Target(
            name=self.name, phrase=self.phrase, unit=self.unit, form=self.form,
            suffix=f" {self.unit}" if self.suffix is None else self.suffix,
            size=_pattern(size, self.decimals), lower=self.lower, upper=self.upper,
            large=LARGE_SHARE * size if self.large is None else self.large, better=self.better,
        )  # fmt: skip


@dataclass(config=STRICT, kw_only=True, frozen=True)
class TableConfig(StudyConfig):
    """A user's own states, explanations and outcomes: which column holds what."""

    id: Column
    cluster: tuple[Column, ...]  # levels of the bootstrap, outermost first
    description: Column
    intervention: Column
    explanation: Column
    donor: DonorPolicy  # whose explanation stands in context S
    donor_column: Column | None  # holds a state's donor id; needed by, and only by, `donor: column`
    targets: tuple[TableTarget, ...]

    @field_validator("burn_in")
    @classmethod
    def _burn_in_is_the_pool_s_own(cls, burn_in: str, info: ValidationInfo) -> str:
        pool = info.data.get("pool")
        if pool is not None and burn_in != pool:
            raise ValueError(
                f"a table's burn-in is the file pools.{pool}.burn_in; name it there and set burn_in to {pool}"
            )
        return burn_in

    @field_validator("donor_column")
    @classmethod
    def _column_goes_with_its_policy(cls, column: str | None, info: ValidationInfo) -> str | None:
        policy = info.data.get("donor")
        if policy == "column" and column is None:
            raise ValueError("donor: column needs the column that holds the donors' ids in donor_column")
        if policy is not None and policy != "column" and column is not None:
            raise ValueError(f"donor: {policy} reads no column; set donor_column to null or donor to column")
        return column

    @property
    def given_donor(self) -> str | None:
        """The donors' column, if context S is asked and the file names the donors."""
        return self.donor_column if Context.DONOR in self.contexts else None

    def lists(self) -> Mapping[str, Sequence[Any]]:
        """A column can play one part only, and a target needs a name of its own."""
        columns = [self.id, *self.cluster, self.description, self.intervention, self.explanation]
        columns += [self.donor_column] if self.donor_column else []
        return {
            **super().lists(),
            "cluster": self.cluster,
            "targets": [target.name for target in self.targets],
            "columns": [*columns, *(target.column for target in self.targets)],
        }


def _pattern(size: float, decimals: int) -> str:
    """How amounts up to `size` are written: `??#.##` for 100 with two decimals."""
    whole = "?" * (len(str(int(size))) - 1) + "#"
    return f"{whole}.{'#' * decimals}" if decimals else whole
