"""NVFlare on this machine: its server and clients as processes, as ``nvflare poc`` sets them up."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import privet
from privet.flare.jobs import CONTROLLER, EXECUTOR, write_job
from privet.network.interface import NVFLARE

from .houses import STUDY, Town
from .sites import free_port, until

#: Executors that are installed at the sites of a test: with noise that can be drawn again, one that
#: takes its time, and one whose process is killed.
INSTALLED = """
import os, signal, time
from privet.flare.components import PartyExecutor

class Seeded(PartyExecutor):
    def open_site(self, policy):
        site = super().open_site(policy)
        site.random_state = ["north", "south"].index(policy.name)
        return site

class Slow(Seeded):
    def open_site(self, policy):
        site = super().open_site(policy)
        reply = site.reply
        def slow(study, message):
            time.sleep(1)
            return reply(study, message)
        site.reply = slow
        return site

class Dying(PartyExecutor):
    def open_site(self, policy):
        site = super().open_site(policy)
        if policy.name == "south":
            site.reply = self._counted(site.reply)
        return site

    def _counted(self, reply):
        asked = []
        def counted(study, message):
            asked.append(message)
            if len(asked) == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            return reply(study, message)
        return counted
"""


class CarriedTown(Town):
    """Houses and a coordinator whose messages NVFlare carries."""

    def __init__(
        self, folder, names=("north", "south"), protocol="noisy-counts", patience=900, **study
    ):
        super().__init__(folder, names, protocol, **study)
        port = self.houses[0].coordinator
        for house in self.houses:
            house.coordinator = NVFLARE
            house.write()
        self.file = self.folder / f"{STUDY}.toml"
        text = (self.folder / "study.toml").read_text()
        text = text.replace(port, NVFLARE).replace("patience = 600", f"patience = {patience}")
        self.file.write_text(text)


class Project(CarriedTown):
    """A project of NVFlare, of which every party is a client.

    With ``relay``, a function from a port to one that leads there, the last party dials that one.
    """

    def __init__(self, folder, *, relay=None, **options):
        super().__init__(folder, **options)
        names = [house.name for house in self.houses]
        #: The processes, by name.
        self.started = {}
        self.kits = self.folder / "poc" / "hospitals" / "prod_00"
        (self.folder / "home").mkdir()
        (self.folder / "installed").mkdir()
        (self.folder / "installed" / "test_party.py").write_text(INSTALLED)
        source = str(Path(privet.__file__).parents[1])
        self.environment = {
            **os.environ,
            "HOME": str(self.folder / "home"),
            "NVFLARE_POC_WORKSPACE": str(self.folder / "poc"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([source, str(self.folder / "installed")]),
        }
        project = self.folder / "project.yml"
        project.write_text(json.dumps(_project(names, relay)))
        subprocess.run(
            [sys.executable, "-m", "nvflare.cli", "poc", "prepare", "-i", str(project), "--force"],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        for house in self.houses:
            local = self.kits / house.name / "local"
            shutil.copytree(house.folder, local, dirs_exist_ok=True)
            house.folder = local  # it lives there from now on
            _allow(local, EXECUTOR, "test_party.")
        local = self.kits / "server" / "local"
        _allow(local, CONTROLLER)
        for each in self.folder.iterdir():
            if each.suffix in (".pem", ".key", ".toml"):
                shutil.copy(each, local)
        for house in self.houses:
            (local / house.name).mkdir()
            shutil.copy(house.folder / f"{house.name}.pem", local / house.name)

    @contextmanager
    def running(self):
        """Start the server and the clients; yield a session of who submits jobs."""
        try:
            for name in ("server", *(house.name for house in self.houses)):
                self.start(name)
            session = self.session()
            try:
                yield session
            finally:
                session.close()
        finally:
            for each in self.started.values():
                end(each)

    def start(self, name):
        """Start NVFlare's process of the server or of a client."""
        with (self.folder / f"{name}.out").open("w") as output:
            self.started[name] = subprocess.Popen(
                ["bash", str(self.kits / name / "startup" / "sub_start.sh"), "--once"],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def session(self):
        """Return a session of who submits jobs, when all clients are there."""
        from nvflare.fuel.flare_api.flare_api import new_secure_session

        def joined():
            said, count = (self.folder / "server.out").read_text(), len(self.houses)
            return f"Total clients: {count}" in said or said.count("Re-activate the") == count

        until(joined, 900)
        kit = str(self.kits / "admin@nvidia.com")
        return new_secure_session("admin@nvidia.com", kit, timeout=300)

    def write(self, name, executor, estimator):
        """Write a job whose sites have an executor of the tests."""
        made = write_job(
            self.folder / name, STUDY, [house.name for house in self.houses], estimator
        )
        config = made / "site" / "config" / "config_fed_client.json"
        config.write_text(config.read_text().replace(EXECUTOR, executor))
        return made


def _allow(local, *classes):
    """Add to the classes that a place allows."""
    path = local / "resources.json"
    found = json.loads((path if path.exists() else local / "resources.json.default").read_text())
    found["class_allow_list"] += classes
    path.write_text(json.dumps(found))


def _project(names, relay):
    port = free_port()
    clients = [{"name": name, "type": "client", "org": "o"} for name in names]
    if relay is not None:
        clients[-1]["connect_to"] = {"host": "localhost", "port": relay(port)}
    server = {"name": "server", "type": "server", "org": "o", "default_host": "localhost"}
    admin = {"name": "admin@nvidia.com", "type": "admin", "org": "o", "role": "project_admin"}
    impl = "nvflare.lighter.impl"
    return {
        "api_version": 3,
        "name": "hospitals",
        "participants": [
            {**server, "fed_learn_port": port},
            admin,
            *clients,
        ],
        "builders": [
            {
                "path": f"{impl}.workspace.WorkspaceBuilder",
                "args": {"template_file": ["master_template.yml"]},
            },
            {"path": f"{impl}.static_file.StaticFileBuilder", "args": {"config_folder": "config"}},
            {"path": f"{impl}.cert.CertBuilder"},
            {"path": f"{impl}.signature.SignatureBuilder"},
        ],
    }


def end(process):
    """End a process and those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()
