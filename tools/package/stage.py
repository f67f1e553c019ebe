"""The installed files of a build as a package needs them: no folder of this machine in them, third-party libraries
that are not linked statically in lib/lockstep, equal times."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

# On every Linux with glibc 2.36 or later (the lists of the manylinux policies), and what torch's wheel brings.
SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "ld-linux-x86-64.so.2"}
TORCH = {"libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so", "libcudart.so.13", "libnccl.so.2"}
# Linked as shared libraries (cmake/LockstepStaticDeps.cmake says why).
CARRIED = {"libisal.so.2", "libpng16.so.16", "libjpeg.so.62", "libjpeg.so.8", "libprotobuf-lite.so.32",
           "libyaml-cpp.so.0.7", "libyaml-cpp.so.0.8"}
RUN_PATH = "$ORIGIN/../lib:$ORIGIN/../lib/lockstep"


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries(prefix):
    return [path for path in sorted(prefix.rglob("*")) if is_elf(path)]


def needed(path):
    text = subprocess.run(["readelf", "--wide", "-d", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def foreign_libraries(path):
    """Names of the libraries that neither every system, nor torch, nor the package brings."""
    return sorted(set(needed(path)) - SYSTEM - TORCH - CARRIED)


def library_file(name):
    """The file that the loader of this machine takes for a name."""
    text = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^\s*{re.escape(name)} \(libc6,x86-64.*=> (\S+)$", text, re.MULTILINE)
    if not found:
        raise SystemExit(f"package: {name} is linked, but the loader does not find it on this machine")
    return Path(found[1])


def carry_libraries(prefix):
    names = {name for path in binaries(prefix) for name in needed(path)} & CARRIED
    for name in sorted(names):
        target = prefix / "lib" / "lockstep" / name
        shutil.copyfile(library_file(name).resolve(), target)
        target.chmod(0o755)


def set_run_paths(prefix):
    """Run paths without the folders of the build. CMake's own command, which its install scripts use."""
    changed = [path for path in binaries(prefix) if path.parent != prefix / "lib" / "lockstep"]
    lines = [f'file(RPATH_SET FILE "{path}" NEW_RPATH "{RUN_PATH}")'.replace("$", "\\$") for path in changed]
    script = prefix.parent / "run_paths.cmake"
    script.write_text("\n".join(lines) + "\n")
    subprocess.run(["cmake", "-P", script], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def forget_torch_folder(prefix):
    file = prefix / "lib" / "lockstep" / "torch.json"
    torch = json.loads(file.read_text())
    folder = torch.pop("folder")
    write_torch_file(prefix, torch)
    return torch, folder


def write_torch_file(prefix, torch):
    (prefix / "lib" / "lockstep" / "torch.json").write_text(json.dumps(torch, sort_keys=True) + "\n")


def set_times(folder, epoch):
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def problems(prefix, torch_folder):
    """What would keep the package from running, or from being built equally, on another machine."""
    for path in sorted(prefix.rglob("*")):
        if path.is_file() and torch_folder.encode() in path.read_bytes():
            yield f"{path.relative_to(prefix)} names {torch_folder}"
    for path in binaries(prefix):
        for name in foreign_libraries(path):
            yield f"{path.relative_to(prefix)} needs {name}, which the package does not carry"


def stage(build, prefix):
    """Installs `build` into the new folder `prefix`. Returns what its torch.json says, and the folder of that torch."""
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    set_run_paths(prefix)
    carry_libraries(prefix)
    return forget_torch_folder(prefix)
