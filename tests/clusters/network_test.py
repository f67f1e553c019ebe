"""Ranks on several hosts choose the network that leads to the master.

network_test.py PROGRAMS: hosts with a docker bridge of equal address, whose own name resolves to a loopback address.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts as machine  # noqa: E402

LIMIT = 300


def start_ranks(programs, hosts, variables, program="01_all_reduce"):
    """One rank per host."""
    processes = []
    for rank, host in enumerate(hosts):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "LOCAL_RANK": "0",
                       "LOCAL_WORLD_SIZE": "1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1",
                       "TORCH_DISTRIBUTED_TIMEOUT": "240", **variables}
        processes.append(host.start(os.path.join(programs, program), env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True))
    return processes


def expect_sum(processes):
    size = len(processes)
    for rank, process in enumerate(processes):
        out, err = process.communicate(timeout=LIMIT)
        expected = f"rank {rank} of {size}: the sum is {size * (size + 1) // 2}"
        assert process.returncode == 0 and expected in out, f"rank {rank} ended with {process.returncode}\n{out}{err}"


def ranks_meet_by_name(programs, hosts):
    """node1 resolves to 127.0.1.1 on node1 itself."""
    expect_sum(start_ranks(programs, hosts, {"MASTER_ADDR": "node1"}))


def ranks_meet_by_address(programs, hosts):
    expect_sum(start_ranks(programs, hosts, {"MASTER_ADDR": hosts[0].address}))


def ranks_meet_over_ipv6_alone(programs, hosts):
    for host in hosts:
        host.run("ip", "-4", "address", "flush", "dev", "net0")
    expect_sum(start_ranks(programs, hosts, {"MASTER_ADDR": hosts[0].address_v6}))
    for host in hosts:
        host.run("ip", "address", "add", host.address + "/24", "dev", "net0")


def interfaces_may_be_named(programs, hosts):
    expect_sum(start_ranks(programs, hosts, {"MASTER_ADDR": "node1", "GLOO_SOCKET_IFNAME": "net0"}))


def only_the_jobs_network_listens(programs, hosts):
    """While rank 0 waits for the others, its store listens at MASTER_ADDR alone; connected ranks likewise."""
    ranks = start_ranks(programs, hosts[:1], {"MASTER_ADDR": hosts[0].address, "WORLD_SIZE": "2"})
    while not hosts[0].listeners():
        assert ranks[0].poll() is None, ranks[0].communicate()
    assert hosts[0].listeners() == {hosts[0].address}, hosts[0].listeners()
    ranks[0].kill()
    ranks[0].communicate()
    ranks = start_ranks(programs, hosts, {"MASTER_ADDR": hosts[0].address})
    while any(rank.poll() is None for rank in ranks):
        for host in hosts:
            assert host.listeners() <= {host.address}, host.listeners()
    expect_sum(ranks)


def one_host_stays_on_loopback(programs, hosts):
    seen = set()
    ranks = []
    for rank in range(2):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500",
                           LOCKSTEP_EXCHANGE="gloo", OMP_NUM_THREADS="1")
        ranks.append(hosts[0].start(os.path.join(programs, "01_all_reduce"), env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True))
    while any(rank.poll() is None for rank in ranks):
        seen |= hosts[0].listeners()
    expect_sum(ranks)
    assert seen <= {"127.0.0.1"}, seen


def commands_of_the_document(programs, hosts, folder):
    """By hand on two hosts, and lockstep launch on one."""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                   "CUDA_VISIBLE_DEVICES": ""}
    command = machine.documented("RANK=0")
    ranks = [host.start("bash", "-c", f"cd {folder} && {line} --epochs 1", env=environment, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
             for host, line in zip(hosts, (command, command.replace("RANK=0", "RANK=1", 1)))]
    outputs = [rank.communicate(timeout=LIMIT) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0] and "World size: 2" in outputs[0][0], outputs
    for options in ("lockstep", "--use_env lockstep"):
        command = machine.documented(f"lockstep launch --nproc_per_node=2 {options}")
        place = tempfile.mkdtemp(dir=folder)
        result = subprocess.run(hosts[0].command("bash", "-c", f"cd {place} && {command} --epochs 1"), env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
        assert result.returncode == 0 and "World size: 2" in result.stdout, result
    result = subprocess.run(hosts[0].command("bash", "-c", f"cd {tempfile.mkdtemp(dir=folder)} && "
                                             f"{machine.documented('lockstep train tiny --nproc 2 --predict')}"),
                            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT,
                            check=False)
    rows = re.findall(r"^ +(\d+x\d+) +(\d+) +[\d.]+ ms +[\d.]+ ms +\d+%", result.stdout, re.M)
    assert result.returncode == 0 and rows == [("1x2", "2"), ("1x4", "4"), ("8x8", "64"), ("64x8", "512")], result
    assert "all processes are on one machine" in result.stdout, result.stdout


def main():
    machine.require("unshare", "nsenter", "ip", "ss")
    machine.enter_private_machine()
    programs = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        hosts = machine.make_hosts(3, folder)
        for case in (ranks_meet_by_name, ranks_meet_by_address, ranks_meet_over_ipv6_alone, interfaces_may_be_named,
                     only_the_jobs_network_listens, one_host_stays_on_loopback):
            case(programs, hosts)
            print(f"ok  {case.__name__}", flush=True)
        commands_of_the_document(programs, hosts, folder)


if __name__ == "__main__":
    main()
