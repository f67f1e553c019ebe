"""A real Slurm: slurmctld and one slurmd per host of hosts.py, with a configuration and files of its own."""
import os
import shutil
import subprocess

from hosts import wait_until

CONFIGURATION = """ClusterName=lockstep
SlurmctldHost=node1({controller})
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """Hosts, the first of which runs the controller. Commands of Slurm run there."""

    def __init__(self, hosts, folder, tasks_per_node):
        self.hosts, self.folder = hosts, folder
        for name in ("state", "munge"):
            os.mkdir(os.path.join(folder, name), 0o700)
        nodes = "\n".join(f"NodeName={host.name} NodeAddr={host.address} CPUs={tasks_per_node} State=UNKNOWN"
                          for host in hosts)
        self.configuration = os.path.join(folder, "slurm.conf")
        with open(self.configuration, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(controller=hosts[0].address, folder=folder, nodes=nodes))
        self.environment = dict(os.environ, SLURM_CONF=self.configuration, OMP_NUM_THREADS="1")
        self.daemons = []

    def start(self):
        munge = os.path.join(self.folder, "munge")
        with open(os.path.join(munge, "key"), "wb") as file:
            os.chmod(file.name, 0o600)
            file.write(os.urandom(64))
        self.daemons.append(subprocess.Popen(
            ["munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
             f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"],
            stderr=subprocess.DEVNULL))
        wait_until(lambda: os.path.exists(f"{munge}/socket"), "munged's socket")
        self.start_daemon(self.hosts[0], "slurmctld")
        for host in self.hosts:
            self.start_daemon(host, "slurmd", "-N", host.name)
        wait_until(lambda: self.are_nodes_idle(), lambda: f"idle nodes: {self.node_states()}\n{self.logs()}",
                   seconds=600)

    def start_daemon(self, host, *words):
        self.daemons.append(host.start(*words, "-D", "-f", self.configuration, env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def are_nodes_idle(self):
        for daemon in self.daemons:
            assert daemon.poll() is None, f"{daemon.args} ended with {daemon.returncode}\n{self.logs()}"
        return self.node_states() == {"idle"}

    def node_states(self):
        return set(self.ask("sinfo", "-h", "-o", "%t").split())

    def start_command(self, *words, **options):
        return self.hosts[0].start(*words, env=dict(self.environment, **options.pop("variables", {})),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def ask(self, *words):
        return self.start_command(*words).communicate(timeout=120)[0]

    def run(self, *words, variables=None):
        process = self.start_command(*words, variables=variables or {})
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, f"{' '.join(words)} ended with {process.returncode}\n{out}{err}\n{self.logs()}"
        return out

    def job(self, number):
        """The fields of a job as scontrol prints them."""
        text = self.ask("scontrol", "show", "job", "-o", number)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def logs(self):
        texts = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    texts.append(f"--- {name}\n" + file.read()[-3000:])
        return "\n".join(texts)

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
