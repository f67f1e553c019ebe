"""Lockstep under a real mpirun (Open MPI) and mpiexec (MPICH), on one host and on two.

mpi_test.py PROGRAMS
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts as machine  # noqa: E402

OPEN_MPI = ["mpirun.openmpi", "--bind-to", "none"]
MPICH = ["mpiexec.hydra"]
# Open MPI refuses root and more processes than cores unless told so.
VARIABLES = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1",
             "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def run(host, *words, **variables):
    environment = {**os.environ, **VARIABLES, **variables}
    return subprocess.run(host.command(*words), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=600, check=False)


def expect_sum(result, size):
    for rank in range(size):
        expected = f"rank {rank} of {size}: the sum is {size * (size + 1) // 2}"
        assert expected in result.stdout, f"{result.returncode}\n{result.stdout}{result.stderr}"
    assert result.returncode == 0, result.stderr


def one_host(programs, hosts, folder):
    program = os.path.join(programs, "01_all_reduce")
    expect_sum(run(hosts[0], *OPEN_MPI, "-n", "4", program), 4)
    expect_sum(run(hosts[0], *MPICH, "-n", "4", program), 4)


def commands_of_the_document(programs, hosts, folder):
    """As they are typed, with a remote shell that knows these hosts."""
    shell = machine.remote_shell(hosts, os.path.join(folder, "shell"))
    names = tempfile.mkdtemp(dir=folder)
    for name, program in (("mpirun", "mpirun.openmpi"), ("mpiexec", "mpiexec.hydra")):
        with open(os.path.join(names, name), "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\nexec {shutil.which(program)} "$@"\n')
        os.chmod(file.name, 0o755)
    variables = {"PATH": f"{names}:{programs}:{os.environ['PATH']}", "OMPI_MCA_plm_rsh_agent": shell,
                 "OMPI_MCA_oob_tcp_if_include": "net0", "HYDRA_LAUNCHER_EXEC": shell, "HYDRA_IFACE": "net0",
                 "CUDA_VISIBLE_DEVICES": ""}
    for beginning, size in (("mpirun -n", 2), ("mpiexec -n", 2), ("mpirun --host", 4), ("mpiexec -hosts", 4)):
        place = tempfile.mkdtemp(dir=folder)
        command = machine.documented(beginning)
        if command.startswith("mpirun --host"):
            # Open MPI's daemons do not hand on these.
            command = command.replace(" -x", " -x PATH -x OMP_NUM_THREADS -x CUDA_VISIBLE_DEVICES -x", 1)
        result = run(hosts[0], "bash", "-c", f"cd {place} && {command} --epochs 1", **variables)
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
        assert f"World size: {size}" in result.stdout, result.stdout


def two_hosts(programs, hosts, folder):
    shell = machine.remote_shell(hosts, os.path.join(folder, "shell"))
    open_mpi = [*OPEN_MPI, "--mca", "plm_rsh_agent", shell, "--mca", "oob_tcp_if_include", "net0", "--host",
                "node1:2,node2:2", "-n", "4", "-x", "MASTER_ADDR", "-x", "MASTER_PORT", "-x", "OMP_NUM_THREADS"]
    mpich = [*MPICH, "-launcher", "ssh", "-launcher-exec", shell, "-iface", "net0", "-hosts", "node1:2,node2:2", "-n", "4"]
    program = os.path.join(programs, "01_all_reduce")
    for command in (open_mpi, mpich):
        result = run(hosts[0], *command, program)
        assert result.returncode != 0
        expected = "set MASTER_ADDR to the machine of rank 0 and MASTER_PORT to a free port there"
        assert expected in result.stderr, f"{result.stdout}{result.stderr}"
        expect_sum(run(hosts[0], *command, program, MASTER_ADDR="node1", MASTER_PORT="29500"), 4)


def main():
    machine.require("unshare", "nsenter", "ip", "mpirun.openmpi", "mpiexec.hydra")
    machine.enter_private_machine()
    programs = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        hosts = machine.make_hosts(2, folder)
        for case in (one_host, two_hosts, commands_of_the_document):
            case(programs, hosts, folder)
            print(f"ok  {case.__name__}", flush=True)


if __name__ == "__main__":
    main()
