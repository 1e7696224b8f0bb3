"""``privet fit --parties``: learning from parties over a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.cli._terminal import say

if TYPE_CHECKING:
    from privet.model import Model
    from privet.network import Check, Study


def open_study(parties: Path, unused: dict[str, Any]) -> Study:
    """Return a study; options that have no sense with it are refused."""
    from privet.errors import FederationError
    from privet.network import Study

    for option, value in unused.items():
        if value:
            raise FederationError(
                f"{option} is not for --parties: rows and ledgers are the parties' own, and the "
                "schema is the study's"
            )
    return Study.from_toml(parties)


def fit_study(study: Study, estimator: Any, run: Path | None, resume: Path | None) -> Model:
    """Learn from the parties of a study, and say how it goes."""
    fitted = study.fit(estimator, run=run, resume=resume, tell=_tell)
    model: Model = fitted.to_model()
    return model


def check_study(study: Study, estimator: Any) -> None:
    """Say whether all parties are here and would let this be learnt."""
    from privet.privacy import as_float

    found: Check = study.check(estimator, tell=_tell)
    for name, left in found.left.items():
        say(
            f"{name} is here, allows what will be asked, and has epsilon {as_float(left):.6g} left."
        )
    say(
        f"All parties would let this be learnt, for epsilon {as_float(found.epsilon):.6g} at most. "
        "Nothing was spent."
    )


def _tell(sentence: str) -> None:
    say(sentence, lead="...", style="dim", error=True)
