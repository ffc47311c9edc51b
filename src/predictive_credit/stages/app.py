"""The Hydra application behind `predictive-credit run`: one folder a job, `-m` for a sweep."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from predictive_credit import compose, tables
from predictive_credit.errors import PredictiveCreditError
from predictive_credit.stages import pipeline
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params


def run(words: Sequence[str]) -> int:
    """Run Hydra on `words`; 1 if any job failed, each having said why in one sentence.

    Raises BadConfig before the first job when the words do not compose.
    """
    import hydra
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import DictConfig

    conf = compose.conf_dir(Path())
    compose.check_run(Path(), words)
    failed: list[str] = []

    def job(composed: DictConfig) -> None:
        folder = Path(HydraConfig.get().runtime.output_dir)
        asked = " ".join(HydraConfig.get().overrides.task) or "the defaults"
        try:
            values = compose.plain(composed, asked)
            params = study_params.parse(values, origin=asked)
            tables.write_bytes(folder / "params.yaml", compose.text(values).encode())
            pipeline.run_all(Project(folder), params)
            print(f"{asked}: {folder}")
        except PredictiveCreditError as error:
            print(f"error: {asked}: {error}", file=sys.stderr)
            failed.append(asked)

    sys.argv = ["predictive-credit run", *words]
    hydra.main(config_path=str(conf), config_name="config", version_base="1.3")(job)()
    return 1 if failed else 0
