"""What NVFlare builds by name at its server and at its clients. Needs ``privet[nvflare]``.

A job carries no code: it names these two classes, which are installed at every place. What they
read is the place's own, in the folder ``local`` of NVFlare's workspace: the study's file at the
server, ``party.toml`` at a site. A job cannot name another file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from privet.errors import PrivetError
from privet.flare.jobs import fit_job
from privet.flare.lines import Unreachable
from privet.flare.sealed import PartyEnd, refusal
from privet.network.interface import NVFLARE
from privet.network.policy import Policy, PolicyError
from privet.network.site import Site
from privet.reading import read_table

#: NVFlare's topic of our messages, and what a message has in it.
TOPIC, FRAME = "privet", "frame"


def _local(fl_ctx: FLContext) -> Path:
    """Return the folder that belongs to whoever runs NVFlare here, and to no job."""
    return Path(fl_ctx.get_engine().get_workspace().get_site_config_dir())


class AuxiliaryChannel:
    """Carries frames as auxiliary messages of a job. See :class:`~privet.flare.lines.Channel`."""

    def __init__(self, controller: Controller, engine: Any, abort_signal: Signal) -> None:
        self._controller, self._engine, self._abort = controller, engine, abort_signal

    def request(self, name: str, frame: bytes, seconds: float) -> bytes:
        """See :class:`~privet.flare.lines.Channel`."""
        message = Shareable()
        message[FRAME] = frame
        with self._engine.new_context() as fl_ctx:
            replies = self._engine.send_aux_request(
                targets=[name],
                topic=TOPIC,
                request=message,
                timeout=seconds,
                fl_ctx=fl_ctx,
                optional=True,
            )
        reply = (replies or {}).get(name)
        if not isinstance(reply, Shareable) or reply.get_return_code() != ReturnCode.OK:
            raise Unreachable
        answered: bytes = reply.get(FRAME)
        return answered

    def gone(self, name: str) -> bool:
        """See :class:`~privet.flare.lines.Channel`."""
        return self._controller.get_client_disconnect_time(name) is not None

    def aborted(self) -> bool:
        """See :class:`~privet.flare.lines.Channel`."""
        return bool(self._abort.triggered)


class StudyController(Controller):
    """The coordinator of a study, in a job at NVFlare's server.

    The model is written to ``model.json`` in the job's folder, which becomes the job's result. What
    goes wrong ends the job, with the reason in the server's log.

    Parameters
    ----------
    study : str
        The study's name; its file is ``NAME.toml`` in the server's folder ``local``.
    learner : str
        What is learnt (``privet learners``).
    parameters : dict
        The learner's, such as ``{"epsilon": 1.0}``.
    """

    def __init__(self, study: str, learner: str, parameters: dict[str, Any]) -> None:
        super().__init__()
        self._study, self._learner, self._parameters = study, learner, parameters

    def start_controller(self, fl_ctx: FLContext) -> None:
        """See NVFlare's Controller: nothing is to be done."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """See NVFlare's Controller: nothing is to be done."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """See NVFlare's Controller: learn, and write the model."""
        try:
            engine = fl_ctx.get_engine()
            model = fit_job(
                _local(fl_ctx),
                self._study,
                self._learner,
                self._parameters,
                AuxiliaryChannel(self, engine, abort_signal),
                self.logger.info,
            )
            job = Path(engine.get_workspace().get_run_dir(fl_ctx.get_job_id()))
            model.save(job / "model.json")
            self.logger.info("privet: wrote model.json, in the job's folder")
        except PrivetError as error:
            self.system_panic(f"privet: {error}", fl_ctx)
        except Exception as error:  # messages of other libraries may quote what was answered
            self.system_panic(f"privet: failed unexpectedly ({type(error).__name__})", fl_ctx)


class PartyExecutor(Executor):
    """A party of studies, in a job at a client of NVFlare: answers within its owner's policy.

    It reads ``party.toml`` in the client's folder ``local``, has the same books as ``privet party
    serve``, and answers the coordinator whose fingerprint the policy has, and nobody else. Lines
    about questions go to standard output: NVFlare's own log may be sent to its server.
    """

    def __init__(self) -> None:
        super().__init__()
        self._site: Site | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """See NVFlare's FLComponent: begin and end with the job."""
        if event_type == EventType.START_RUN:
            end = self._begin(fl_ctx)

            def answer(topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
                del topic, fl_ctx
                frame = request.get(FRAME)
                reply = make_reply(ReturnCode.OK)
                reply[FRAME] = end if isinstance(end, bytes) else end.answer(frame)
                return reply

            fl_ctx.get_engine().register_aux_message_handler(TOPIC, answer)
        elif event_type == EventType.END_RUN and self._site is not None:
            self._site.close()

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """See NVFlare's Executor: there are no tasks."""
        del task_name, shareable, fl_ctx, abort_signal
        return make_reply(ReturnCode.TASK_UNKNOWN)

    def open_site(self, policy: Policy) -> Site:
        """Return who answers, with the rows read."""
        policy.check_data()
        site = Site(
            policy,
            policy.tls.open_identity(policy.name),
            lambda schema: read_table(policy.data, schema),
            tell=self.tell,
        )
        site.rows()
        return site

    def tell(self, sentence: str) -> None:
        """Say something to the owner of the site."""
        print(f"privet: {sentence}", flush=True)

    def _begin(self, fl_ctx: FLContext) -> PartyEnd | bytes:
        """Return the party's end of the line; a refusal if there is none."""
        try:
            policy = Policy.from_toml(_local(fl_ctx) / "party.toml")
            if policy.coordinator != NVFLARE:
                raise PolicyError(
                    f"{policy.path} does not say that the coordinator asks through NVFlare "
                    "(coordinator = 'nvflare')"
                )
            if policy.name != fl_ctx.get_identity_name():
                raise PolicyError(
                    f"{policy.path} is of a party with another name than NVFlare's client has"
                )
            coordinator = policy.tls.open_coordinator()
            self._site = self.open_site(policy)
            return PartyEnd(self._site, self._site.identity, coordinator)
        except PrivetError as error:
            self.tell(str(error))
        except Exception as error:  # what went wrong may be about the rows
            self.tell(f"failed unexpectedly ({type(error).__name__})")
        return refusal("it takes no part: its owner sees why, where NVFlare's client was started")
