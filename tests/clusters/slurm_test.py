"""Lockstep under a real Slurm of two nodes: srun, and scripts/slurm/train.sbatch over its time limit.

slurm_test.py PROGRAMS
"""
import functools
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts as machine  # noqa: E402
from slurm import Cluster  # noqa: E402

SOURCE = machine.SOURCE
wait_until = functools.partial(machine.wait_until, seconds=600)
BATCH_FILE = os.path.join(SOURCE, "scripts", "slurm", "train.sbatch")
TRAINING = ["--device", "cpu", "--epochs", "3", "--batch_size", "2", "--log_every", "1"]


def srun_forms_one_world(programs, cluster, _):
    out = cluster.run("srun", "-N", "2", "-n", "4", os.path.join(programs, "01_all_reduce"))
    for rank in range(4):
        assert f"rank {rank} of 4: the sum is 10" in out, out


def commands_of_the_document(programs, cluster, folder):
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    place = tempfile.mkdtemp(dir=folder)
    out = cluster.run("bash", "-c", f"cd {place} && {machine.documented('srun')} --epochs 1", variables=variables)
    assert "World size: 4" in out, out
    os.symlink(os.path.join(SOURCE, "scripts"), os.path.join(place, "scripts"))
    command = machine.documented("sbatch --nodes 2 --ntasks-per-node").replace("sbatch", "sbatch --wait -o out", 1)
    cluster.run("bash", "-c", f"cd {place} && {command} --epochs 1 --overwrite", variables=variables)
    with open(os.path.join(place, "out"), encoding="utf-8") as file:
        assert "World size: 4" in file.read()


def steps_of_one_job_do_not_meet(programs, cluster, folder):
    """Two steps at a time on the same two nodes."""
    script = os.path.join(folder, "two.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nfor step in a b; do\n  srun --exact -N 2 -n 2 {programs}/01_all_reduce &\ndone\nwait\n")
    out_file = os.path.join(folder, "two.out")
    cluster.run("sbatch", "--wait", "-N", "2", "-n", "4", "-o", out_file, script)
    with open(out_file, encoding="utf-8") as file:
        out = file.read()
    for rank in range(2):
        assert out.count(f"rank {rank} of 2: the sum is 3") == 2, out


def a_script_without_srun_is_told(programs, cluster, folder):
    """One process of a job of four tasks: it runs alone, at once, and says so."""
    script, out_file = os.path.join(folder, "alone.sh"), os.path.join(folder, "alone.out")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexec {programs}/01_all_reduce\n")
    cluster.run("sbatch", "--wait", "-N", "2", "-n", "4", "-o", out_file, script)
    with open(out_file, encoding="utf-8") as file:
        out = file.read()
    assert "rank 0 of 1: the sum is 1" in out, out
    assert "SLURM_NTASKS=4, but srun did not start this process: it runs alone" in out, out


def launchers_prove_a_secret_of_the_job(programs, cluster, folder):
    """As the document shows it: one launcher per node, and a secret that the batch file makes and removes."""
    place = tempfile.mkdtemp(dir=folder)
    os.symlink(os.path.join(SOURCE, "scripts"), os.path.join(place, "scripts"))
    script = os.path.join(place, "program.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nstat -c 'mode %a' {place}/.lockstep-$SLURM_JOB_ID.secret\nexec {programs}/01_all_reduce\n")
    os.chmod(script, 0o755)
    command = machine.documented("sbatch --nodes 2 scripts/slurm/run.sbatch")
    assert command.endswith(" lockstep-worker train tiny"), command
    command = command.replace("sbatch", "sbatch --wait -o out", 1).replace("lockstep-worker train tiny", script)
    cluster.run("bash", "-c", f"cd {place} && {command}",
                variables={"PATH": f"{programs}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""})
    with open(os.path.join(place, "out"), encoding="utf-8") as file:
        out = file.read()
    assert out.count("mode 600") == 4, out
    for rank in range(4):
        assert f"rank {rank} of 4: the sum is 10" in out, out
    assert not [name for name in os.listdir(place) if name.endswith(".secret")], os.listdir(place)


def submit(programs, cluster, folder, name, *flags):
    """Returns the number of the job and its output file."""
    run, out_file = os.path.join(folder, name), os.path.join(folder, f"{name}.out")
    os.makedirs(run + ".record")
    out = cluster.run("sbatch", "-N", "2", "--ntasks-per-node", "2", "--time", "60", "--signal", "B:USR1@45", "-o",
                      out_file, BATCH_FILE, "probe", *TRAINING, "--save_dir", run, "--record", run + ".record", *flags,
                      variables={"LOCKSTEP_WORKER": os.path.join(programs, "probe_worker")})
    return re.search(r"\d+", out).group(0), out_file


def finish(cluster, job, out_file):
    """Waits for the end and returns how often the job was requeued."""
    states = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
    wait_until(lambda: cluster.job(job).get("JobState") in states, lambda: f"job {cluster.job(job)}\n{cluster.logs()}")
    with open(out_file, encoding="utf-8") as file:
        out = file.read()
    assert cluster.job(job)["JobState"] == "COMPLETED", f"{cluster.job(job)}\n{out}"
    return int(cluster.job(job)["Restarts"]), out


def weights_before_each_batch(folder, name):
    """Rank by rank, from the records of the recipe of the tests: of training, and of validation, which is done again
    when it was interrupted."""
    trained, validated = [], []
    for rank in range(4):
        with open(os.path.join(folder, f"{name}.record", f"rank_{rank}.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        trained.append([line for line in lines if line.startswith("train")])
        validated.append({line for line in lines if line.startswith("validate")})
    return trained, validated


def run_seconds(cluster, job):
    days, _, time = cluster.job(job)["RunTime"].rpartition("-")
    hours, minutes, seconds = (int(part) for part in time.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def a_job_near_its_limit_saves_and_goes_on(programs, cluster, folder):
    """All ranks wait in a step until the signal that precedes the limit has become SIGTERM; only then is it near."""
    job, out_file = submit(programs, cluster, folder, "whole")
    assert finish(cluster, job, out_file)[0] == 0
    job, out_file = submit(programs, cluster, folder, "cut", "--pause_in", "train", "--pause_call", "4")
    paused = [os.path.join(folder, "cut.record", f"paused_{rank}") for rank in range(4)]
    wait_until(lambda: all(os.path.exists(path) for path in paused), lambda: f"the pause: {cluster.job(job)}")
    # In minutes; more than the 45 s of --signal are left.
    cluster.run("scontrol", "update", f"JobId={job}", f"TimeLimit={(run_seconds(cluster, job) + 50) // 60 + 1}")
    wait_until(lambda: cluster.job(job)["Restarts"] != "0", lambda: f"the requeue: {cluster.job(job)}")
    # The rest may take as long as it does.
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=60")
    restarts, out = finish(cluster, job, out_file)
    assert restarts >= 1, out
    for text in (f"the time limit of job {job} is near: saving", f"job {job} is queued again"):
        assert text in out, out
    whole, cut = weights_before_each_batch(folder, "whole"), weights_before_each_batch(folder, "cut")
    assert len(whole[0][3]) == 9 and whole == cut, f"{whole}\n{cut}\n{out}"
    os.makedirs(os.path.join(folder, "one.record"))
    cluster.run(os.path.join(programs, "lockstep"), "run", "--nproc", "4", os.path.join(programs, "probe_worker"), "train",
                "probe", *TRAINING, "--save_dir", os.path.join(folder, "one"), "--record",
                os.path.join(folder, "one.record"))
    assert weights_before_each_batch(folder, "one") == whole, "four ranks of one machine"


def main():
    machine.require("unshare", "nsenter", "ip", "munged", "slurmctld", "slurmd", "srun", "sbatch")
    machine.enter_private_machine(users="all")
    programs = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(machine.make_hosts(2, folder), tempfile.mkdtemp(dir=folder), tasks_per_node=2)
        try:
            cluster.start()
            for case in (srun_forms_one_world, commands_of_the_document, launchers_prove_a_secret_of_the_job,
                         steps_of_one_job_do_not_meet, a_script_without_srun_is_told, a_job_near_its_limit_saves_and_goes_on):
                case(programs, cluster, folder)
                print(f"ok  {case.__name__}", flush=True)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
