"""Hosts made of namespaces: each has its own network, name, /etc/hosts and routes, and all share one disk.

Nothing of it outlives the test: enter_private_machine() runs the test again as the first process of a process
namespace, and the kernel ends whatever is left there.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

NETWORK = "10.77.0."
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def documented(beginning, page="clusters.md"):
    """The command of a page in docs/how-to that begins so: what that page shows is what a test has run."""
    with open(os.path.join(SOURCE, "docs", "how-to", page), encoding="utf-8") as file:
        blocks = file.read().split("```")[1::2]
    found = [line for block in blocks for line in block.splitlines() if line.startswith(beginning)]
    assert len(found) == 1, f"{len(found)} commands begin with '{beginning}': {found}"
    return found[0]


def enter_private_machine(users="own"):
    """Starts this program again in namespaces of its own. Who is not root becomes root of a user namespace, or, when
    `users` is "all", root by sudo: a user namespace has one user only."""
    if os.environ.get("LOCKSTEP_TEST_MACHINE") == "private":
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0 and users == "all":
        command = ["sudo", "-n", "-E", *command]
    elif os.geteuid() != 0:
        command += ["--user", "--map-root-user"]
    environment = dict(os.environ, LOCKSTEP_TEST_MACHINE="private")
    os.execvpe(command[0], command + [sys.executable, "-B", *sys.argv], environment)


def require(*programs):
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        sys.exit(f"missing: {', '.join(missing)}; './lockstep.sh test' installs them")


class Host:
    """A network namespace, a host name and an /etc/hosts; the holder process keeps them."""

    def __init__(self, name, number, folder):
        self.name, self.address, self.address_v6 = name, NETWORK + str(number), f"fd77::{number}"
        self.folder = folder
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "--uts", "sh", "-c", "echo ready; exec sleep infinity"],
            stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.inside = ["nsenter", "-t", str(self.holder.pid), "-m", "-n", "-u"]
        self.run("hostname", name)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words):
        return [*self.inside, *words]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words), check=True, **options)

    def start(self, *words, **options):
        return subprocess.Popen(self.command(*words), **options)

    def plug_in(self, number):
        """An interface net0 whose other end is a port of the machine's bridge."""
        subprocess.run(["ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "net0", "netns",
                        str(self.holder.pid)], check=True)
        subprocess.run(["ip", "link", "set", f"port{number}", "master", "switch", "up"], check=True)
        self.run("ip", "address", "add", self.address + "/24", "dev", "net0")
        # Without the check for duplicates, which takes seconds.
        self.run("ip", "address", "add", self.address_v6 + "/64", "dev", "net0", "nodad")
        self.run("ip", "link", "set", "net0", "up")

    def write_hosts(self, lines):
        path = os.path.join(self.folder, f"hosts.{self.name}")
        with open(path, "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n" + "".join(f"{line}\n" for line in lines))
        self.run("mount", "--bind", path, "/etc/hosts")

    def add_decoy(self):
        """docker's bridge: a network of its own with the same address on every host."""
        self.run("ip", "link", "add", "docker0", "type", "bridge")
        self.run("ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
        self.run("ip", "link", "set", "docker0", "up")

    def listeners(self):
        """Addresses at which something listens for TCP connections, without ports."""
        found = set()
        for line in self.run("ss", "-Hltn", stdout=subprocess.PIPE, text=True).stdout.splitlines():
            found.add(line.split()[3].rsplit(":", 1)[0])
        return found


def wait_until(condition, what, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(0.2)


def make_hosts(count, folder=None):
    """Hosts node1 ... nodeN on one switch. Each resolves its own name to 127.0.1.1, as Debian's installer sets it."""
    folder = folder or tempfile.mkdtemp(prefix="lockstep-hosts-")
    subprocess.run(["ip", "link", "add", "switch", "type", "bridge"], check=True)
    subprocess.run(["ip", "link", "set", "switch", "up"], check=True)
    hosts = [Host(f"node{number}", number, folder) for number in range(1, count + 1)]
    for number, host in enumerate(hosts, start=1):
        host.add_decoy()
        host.plug_in(number)
        host.write_hosts(f"{'127.0.1.1' if other is host else other.address} {other.name}" for other in hosts)
    return hosts


def remote_shell(hosts, path):
    """A program with ssh's form, 'PROGRAM [options] HOST COMMAND...', for launchers that need one."""
    cases = "".join(f"    {host.name}) host='{' '.join(host.inside)}' ;;\n" for host in hosts)
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nwhile :; do\n  case \"$1\" in\n    -l | -o) shift 2 ;;\n    -*) shift ;;\n"
                   "    *) break ;;\n  esac\ndone\ncase \"$1\" in\n" + cases +
                   "    *) echo \"no host $1\" >&2; exit 255 ;;\nesac\nshift\nexec $host sh -c \"$*\"\n")
    os.chmod(path, 0o755)
    return path
