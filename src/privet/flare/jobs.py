"""Jobs of NVFlare: what is in their folder (names and numbers, no code), and how they are run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import FederationError
from privet.estimators.registry import default_of, learners, name_of
from privet.flare.lines import Channel, JobStudy
from privet.network.policy import check_name
from privet.schema import Schema
from privet.visible import quoted

if TYPE_CHECKING:
    from privet.model import Model

#: What NVFlare builds at the server and at the sites, from the package that is installed there.
CONTROLLER = "privet.flare.components.StudyController"
EXECUTOR = "privet.flare.components.PartyExecutor"
#: Parameters that have no sense in a job: rows, books and schema are not the analyst's.
_NOT_GIVEN = frozenset({"schema", "ledger", "random_state", "test_share", "test_by", "verbose"})


def write_job(folder: str | Path, study: str, parties: Sequence[str], estimator: Any) -> Path:
    """Write the folder of a job that lets an estimator learn from a study's parties.

    Nothing in it is code: it names two classes that are installed with Privet, the study, and what
    is learnt. It can be submitted as it is (``nvflare job submit -j FOLDER``).

    Parameters
    ----------
    folder : path
        Where; it must not be there yet.
    study : str
        The study's name: NVFlare's server has ``NAME.toml`` in its folder ``local``.
    parties : list of str
        The parties' names, which are those of NVFlare's clients.
    estimator : estimator
        One that learns from a federation, such as ``TopDownClassifier(epsilon=1.0)``.

    Returns
    -------
    path
        The folder.

    Examples
    --------
    >>> from privet import TopDownClassifier
    >>> from tempfile import mkdtemp
    >>> made = write_job(
    ...     mkdtemp() + "/job", "readmission", ["north", "south"], TopDownClassifier(epsilon=1.0)
    ... )
    >>> sorted(each.name for each in made.iterdir())
    ['meta.json', 'server', 'site']
    """
    learner, parameters = _described(estimator)
    names = [check_name(name, "a party") for name in parties]
    if not names or len(set(names)) < len(names):
        raise FederationError("give the names of the parties, each once")
    arguments = {
        "study": check_name(study, "the study"),
        "learner": learner,
        "parameters": parameters,
    }
    meta = {
        "name": f"privet-{study}",
        "resource_spec": {},
        "min_clients": len(names),
        "mandatory_clients": names,
        "deploy_map": {"server": ["server"], "site": names},
    }
    server = {
        "format_version": 2,
        "workflows": [{"id": "study", "path": CONTROLLER, "args": arguments}],
    }
    site = {
        "format_version": 2,
        "executors": [{"tasks": ["privet"], "executor": {"path": EXECUTOR, "args": {}}}],
    }
    folder = Path(folder)
    try:
        for name, plain in (
            ("meta.json", meta),
            ("server/config/config_fed_server.json", server),
            ("site/config/config_fed_client.json", site),
        ):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=path.parent != folder)
            path.write_text(json.dumps(plain, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise FederationError(
            f"the job cannot be written to {folder}: {error.strerror}; name a new folder"
        ) from None
    return folder


def _described(estimator: Any) -> tuple[str, dict[str, Any]]:
    """Return an estimator as a job names it: its learner, and what differs from the defaults."""
    name = name_of(type(estimator))
    found = learners().get(name or "")
    if found is None or type(estimator) not in (found.classifier, found.regressor):
        raise FederationError("give an estimator of privet, such as TopDownClassifier(epsilon=1.0)")
    given = {
        parameter: value
        for parameter, value in estimator.get_params(deep=False).items()
        if parameter == "epsilon" or value != default_of(type(estimator), parameter)
    }
    _check_given(given)
    try:
        plain: dict[str, Any] = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError):
        plain = {}
    if plain != given:
        raise FederationError("a job takes parameters that are numbers, texts or lists of them")
    return found.name, plain


def _check_given(parameters: Mapping[str, Any]) -> None:
    for name in parameters:
        if name in _NOT_GIVEN:
            raise FederationError(
                f"{name} is not for jobs: rows, ledgers and what is set aside are the parties' "
                "own, and the schema is the study's"
            )


def _estimator(learner: Any, parameters: Any, schema: Schema) -> Any:
    """Return the estimator that a job names, checked: a job may come from anybody."""
    found = learners().get(learner) if isinstance(learner, str) else None
    face = None
    if found is not None:
        face = found.regressor if schema.classes is None else found.classifier
    if face is None:
        raise FederationError(f"there is no learner {quoted(learner)} for the study's target")
    if not isinstance(parameters, Mapping):
        raise FederationError("a job's parameters must be names with values")
    _check_given(parameters)
    estimator = face(schema=schema)
    known = estimator.get_params()
    for name in parameters:
        if name not in known:
            raise FederationError(f"{quoted(name)} is no parameter of the learner {learner}")
    return estimator.set_params(**parameters)


def fit_job(
    folder: Path,
    study: Any,
    learner: Any,
    parameters: Any,
    channel: Channel,
    tell: Callable[[str], None],
) -> Model:
    """Let a job's estimator learn from a study's parties; return the model.

    Parameters
    ----------
    folder : path
        Where the coordinator's study files are: ``NAME.toml``.
    study, learner, parameters
        As the job has them.
    channel : Channel
        What carries messages.
    tell : function
        Is told, in a sentence, who came and who is being waited for.
    """
    name = check_name(study, "the study")
    carried = JobStudy.read(folder / f"{name}.toml", channel)
    if carried.name != name:
        raise FederationError(f"{name}.toml is the file of another study: {quoted(carried.name)}")
    estimator = _estimator(learner, parameters, carried.schema)
    model: Model = carried.fit(estimator, tell=tell).to_model()
    return model
