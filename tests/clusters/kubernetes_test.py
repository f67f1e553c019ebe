"""The manifests in scripts/kubernetes: valid by the published schemas, and their commands form one job.

kubernetes_test.py PROGRAMS PACKAGES: PACKAGES is a folder with kubernetes-validate and kubeflow-training; without it
they are in Lockstep's cache (tools/setup/torch.sh). No Kubernetes runs here: hosts made of namespaces are the pods, with the
variables that it would set.
"""
import ast
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts as machine  # noqa: E402

MANIFESTS = os.path.join(machine.SOURCE, "scripts", "kubernetes")
VERSIONS = ("1.28", "1.37")


def read(name):
    import yaml
    with open(os.path.join(MANIFESTS, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def validate(document):
    import kubernetes_validate
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)


def model(packages, name):
    """Field names, types and required fields of one of Kubeflow's classes, which are generated from the schema of
    its CRD. They are read, not imported: the package needs a client of Kubernetes."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    path = os.path.join(packages, "kubeflow", "training", "models", f"{words}.py")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tables = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("openapi_types", "attribute_map"):
            tables[node.targets[0].id] = ast.literal_eval(node.value)
    required = set(re.findall(r"Invalid value for `(\w+)`, must not be `None`", text))
    fields = {tables["attribute_map"][key]: kind for key, kind in tables["openapi_types"].items()}
    return fields, {tables["attribute_map"][key] for key in required}


def check(packages, value, kind, path):
    """Raises AssertionError that names the field which does not fit."""
    if kind.startswith("dict(str, "):
        for key, part in value.items():
            check(packages, part, kind[len("dict(str, "):-1], f"{path}.{key}")
    elif kind.startswith("KubeflowOrgV1"):
        fields, required = model(packages, kind)
        for key in value:
            assert key in fields, f"{path}: {kind} has no field '{key}', but {sorted(fields)}"
            check(packages, value[key], fields[key], f"{path}.{key}")
        assert required <= set(value), f"{path}: missing {required - set(value)}"
    elif kind == "V1PodTemplateSpec":
        validate({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": value})
    elif kind in ("int", "str"):
        assert isinstance(value, {"int": int, "str": str}[kind]), f"{path}: {value!r} is not of type {kind}"
    else:
        assert kind == "V1ObjectMeta", f"{path}: no check for the type {kind}"


def schemas_accept_the_manifests(packages):
    for document in read("indexed-job.yaml"):
        validate(document)
    (job,) = read("pytorchjob.yaml")
    assert job["apiVersion"] == "kubeflow.org/v1"
    check(packages, job, "KubeflowOrgV1PyTorchJob", job["kind"])


def schemas_find_mistakes(packages):
    """The checks can fail."""
    service, job = read("indexed-job.yaml")
    (pytorchjob,) = read("pytorchjob.yaml")
    service["spec"]["clusterIp"] = "None"
    job["spec"]["completions"] = "four"
    pytorchjob["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["container"] = []
    for change in (lambda: validate(service), lambda: validate(job),
                   lambda: check(packages, pytorchjob, "KubeflowOrgV1PyTorchJob", "")):
        try:
            change()
        except Exception:  # noqa: BLE001  # each library has its own
            continue
        raise AssertionError("a mistake was not found")


def names_of_the_job_agree():
    service, job = read("indexed-job.yaml")
    container = job["spec"]["template"]["spec"]["containers"][0]
    values = {entry["name"]: entry.get("value") for entry in container["env"]}
    name, subdomain = job["metadata"]["name"], job["spec"]["template"]["spec"]["subdomain"]
    assert service["metadata"]["name"] == subdomain
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}
    assert values["MASTER_ADDR"] == f"{name}-0.{subdomain}"
    assert values["WORLD_SIZE"] == str(job["spec"]["completions"]) == str(job["spec"]["parallelism"])


class Pods:
    """The containers of a manifest on hosts, one per pod."""

    def __init__(self, programs, hosts, folder, master):
        self.programs, self.hosts, self.folder = programs, hosts, folder
        for host in hosts:
            host.write_hosts([f"{hosts[0].address} {master}"])

    def run(self, container, variables, *flags):
        fixed = {entry["name"]: entry.get("value", "one-job") for entry in container["env"]}
        command = [os.path.join(self.programs, container["command"][0]), *container["command"][1:]]
        command = [word.replace("/runs", self.folder) for word in command] + ["--device", "cpu", *flags]
        processes = []
        for rank, host in enumerate(self.hosts):
            environment = {**os.environ, "KUBERNETES_SERVICE_HOST": "10.96.0.1", "OMP_NUM_THREADS": "1", **fixed,
                           **variables(rank)}
            processes.append(host.start(*command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True))
        outputs = [process.communicate(timeout=600) for process in processes]
        for process, output in zip(processes, outputs):
            assert process.returncode == 0, f"{process.returncode}\n{output}"
        return outputs[0][0]


def the_indexed_job_trains_and_resumes(programs, hosts, folder):
    _, job = read("indexed-job.yaml")
    container = job["spec"]["template"]["spec"]["containers"][0]
    pods = Pods(programs, hosts, folder, "lockstep-tiny-0.lockstep-tiny")

    def variables(rank):
        return {"JOB_COMPLETION_INDEX": str(rank)}

    first = pods.run(container, variables, "--epochs", "1")
    assert "World size: 4" in first and "Local rank: 0" in first, first
    again = pods.run(container, variables, "--epochs", "2")
    assert re.search(r"resum\w+ from", again), again


def the_pytorchjob_trains(programs, hosts, folder):
    (job,) = read("pytorchjob.yaml")
    replicas = job["spec"]["pytorchReplicaSpecs"]
    container = replicas["Master"]["template"]["spec"]["containers"][0]
    size = sum(replica["replicas"] for replica in replicas.values())
    pods = Pods(programs, hosts, folder, "lockstep-tiny-master-0")

    def variables(rank):
        port = container["ports"][0]["containerPort"]
        return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "lockstep-tiny-master-0",
                "MASTER_PORT": str(port), "PET_NNODES": str(size), "PET_NPROC_PER_NODE": "auto",
                "PET_NODE_RANK": str(rank)}

    assert "World size: 4" in pods.run(container, variables, "--epochs", "1")


def find_packages(folder):
    if os.path.isdir(folder):
        return folder
    cache = os.environ.get("LOCKSTEP_CACHE") or os.path.expanduser("~/.cache/lockstep")
    assert os.path.isdir(f"{cache}/kubernetes"), f"neither {folder} nor {cache}/kubernetes; './lockstep.sh test' makes it"
    return f"{cache}/kubernetes"


def main():
    machine.require("unshare", "nsenter", "ip")
    programs, packages = os.path.abspath(sys.argv[1]), find_packages(os.path.abspath(sys.argv[2]))
    sys.path.insert(0, packages)
    schemas_accept_the_manifests(packages)
    schemas_find_mistakes(packages)
    names_of_the_job_agree()
    machine.enter_private_machine()
    with tempfile.TemporaryDirectory() as folder:
        hosts = machine.make_hosts(4, folder)
        for case in (the_indexed_job_trains_and_resumes, the_pytorchjob_trains):
            case(programs, hosts, tempfile.mkdtemp(dir=folder))
            print(f"ok  {case.__name__}", flush=True)


if __name__ == "__main__":
    main()
