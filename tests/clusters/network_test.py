"""Ranks on several hosts choose the network that leads to the master.

network_test.py PROGRAMS: hosts with a docker bridge of equal address, whose own name resolves to a loopback address.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts as machine  # noqa: E402

LIMIT = 300


def start_ranks(programs, hosts, variables, program="01_all_reduce", *flags):
    """One rank per host."""
    processes = []
    for rank, host in enumerate(hosts):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "LOCAL_RANK": str(hosts[:rank].count(host)),
                       "LOCAL_WORLD_SIZE": str(hosts.count(host)), "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
                       "TORCH_DISTRIBUTED_TIMEOUT": "240", **variables}
        processes.append(host.start(os.path.join(programs, program), *flags, env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True))
    return processes


def end(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.communicate()


@contextlib.contextmanager
def paused_training(programs, hosts, variables):
    """Ranks of a training, one per host, that have exchanged gradients and stay in a step."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["train", "probe", "--device", "cpu", "--batch_size", "2", "--save_dir", os.path.join(folder, "run"), "--record",
                 folder, "--pause_in", "train", "--pause_call", "2"]
        ranks = start_ranks(programs, hosts, variables, "probe_worker", *flags)
        try:
            machine.wait_until(lambda: all(os.path.exists(os.path.join(folder, f"paused_{rank}")) or ranks[rank].poll() is not None
                                           for rank in range(len(ranks))), "ranks that pause")
            assert not [rank for rank in ranks if rank.poll() is not None], [rank.communicate() for rank in ranks]
            yield
        finally:
            end(ranks)


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
    machine.wait_until(lambda: hosts[0].listeners() or ranks[0].poll() is not None, "a listener")
    assert hosts[0].listeners() == {hosts[0].address}, (hosts[0].listeners(), ranks[0].poll())
    end(ranks)
    with paused_training(programs, hosts, {"MASTER_ADDR": hosts[0].address}):
        for host in hosts:
            assert host.listeners() == {host.address}, host.listeners()


def one_host_stays_on_loopback(programs, hosts):
    with paused_training(programs, [hosts[0]] * 2, {"MASTER_ADDR": "127.0.0.1", "LOCKSTEP_EXCHANGE": "gloo"}):
        assert hosts[0].listeners() == {"127.0.0.1"}, hosts[0].listeners()


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


def launchers_of_the_document(programs, hosts, folder):
    """`lockstep train` on every host, as docs/how-to/several-machines.md shows it. node1 knows itself as 127.0.1.1 only."""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                   "CUDA_VISIBLE_DEVICES": ""}
    place = tempfile.mkdtemp(dir=folder)

    def documented(beginning):
        return machine.documented(beginning, "several-machines.md")

    subprocess.run(["bash", "-c", f"cd {place} && {documented('head -c 32')}"], check=True)
    joining, numbered = documented("lockstep train tiny --nnodes 3 --nproc 2 --rdzv"), documented("lockstep train tiny --nnodes 3 --nproc 2 --node")
    elastic = documented("lockstep train tiny --nnodes 2:4").replace("2:4", "2:3")  # So that nobody waits for a fourth.
    for name, commands in (("joined", [joining] * 3), ("elastic", [elastic] * 3),
                           ("numbered", [numbered.replace("--node-rank 0", f"--node-rank {node}") for node in range(3)])):
        nodes = [host.start("bash", "-c", f"cd {place} && exec {command} --n_steps 2 --save_dir {name}", env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for host, command in zip(hosts, commands)]
        outputs = [node.communicate(timeout=LIMIT) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0, 0] and "World size: 6" in outputs[0][0], outputs


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
        for case in (commands_of_the_document, launchers_of_the_document):
            case(programs, hosts, folder)
            print(f"ok  {case.__name__}", flush=True)


if __name__ == "__main__":
    main()
