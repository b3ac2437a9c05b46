"""The experiments of one source at scale smoke, on this machine and through a Slurm of its own, and whether they are equal.

    .venv/bin/python workflow/scripts/slurm_test.py [further settings of `snakemake --config`]

Debian's packages slurm-wlm and munge have what it needs. The one node is this machine. Everything lies in a temporary
folder, and ends with this process. Without Slurm it prints one line, and succeeds.
"""

import contextlib
import getpass
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SOURCE = "collective"  # its data are small
SBIN = "/usr/sbin"  # of Debian's daemons, which a user's PATH lacks
COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "srun", "sinfo")
CONF = """\
ClusterName=agglearn
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MinJobAge=86400
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={megabytes}
PartitionName=all Nodes=ALL Default=YES
"""
QUICK = ["--slurm-no-account", "--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "5"]


def lacking() -> list[str]:
    plugin = [] if importlib.util.find_spec("snakemake_executor_plugin_slurm") else ["the extra slurm"]
    return [name for name in COMMANDS if not shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}")] + plugin


def free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment in which Slurm's commands find a cluster of this machine."""
    key, conf, commands = folder / "munge.key", folder / "slurm.conf", folder / "bin"
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    conf.write_text(
        CONF.format(
            host=socket.gethostname().split(".")[0], ports=free_ports(2), user=getpass.getuser(), folder=folder,
            cores=os.cpu_count(), megabytes=memory,
        )
    )  # fmt: skip
    path = f"{commands}:{os.environ['PATH']}:{SBIN}"
    # The plugin takes SLURM_CONF from the environment of the steps of a job.
    srun = commands / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    environment = os.environ | {"SLURM_CONF": str(conf), "PATH": path}
    names = {f"--{name}-file": folder / f"munged.{name}" for name in ("pid", "seed", "log")} | {"--key-file": key}
    munged = ["munged", "--foreground", f"--socket={folder}/munge.socket", *(f"{k}={v}" for k, v in names.items())]
    daemons = []
    try:
        for command in (munged, ["slurmctld", "-D", "-i"], ["slurmd", "-D"]):
            with open(folder / f"{command[0]}.out", "w") as log:
                daemons.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            time.sleep(1)
        wait_for_node(environment, folder)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()


def wait_for_node(environment: dict[str, str], folder: Path) -> None:
    for _ in range(60):
        state = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
        if state.stdout.strip() == "idle":
            return
        time.sleep(1)
    logs = "\n".join(path.read_text()[-1000:] for path in folder.glob("*.out"))
    sys.exit(f"agglearn: Slurm's node is {state.stdout.strip() or state.stderr.strip()}, not idle\n{logs}")


def reproduce(results: Path, environment: dict[str, str], settings: list[str], options: list[str]) -> None:
    command = [sys.executable, "-m", "snakemake", "--cores", str(os.cpu_count()), *options, SOURCE, "--config"]
    tracked = ["scale=smoke", f"results={results}", "tracking={uri: none}"]
    begin = time.perf_counter()
    subprocess.run([*command, *tracked, *settings], env=environment, check=True)
    print(f"agglearn: {results.name}: {time.perf_counter() - begin:.0f} s", flush=True)


def measures(results: Path):
    """All measurements but times and memory."""
    import pandas as pd

    files = sorted(results.rglob("measurements/**/*.parquet"))
    frame = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    return frame[~frame["unit"].isin(["s", "B"])].reset_index(drop=True)


def main(settings: list[str]) -> None:
    if missing := lacking():
        print(f"agglearn: no test of Slurm, there is no {', '.join(missing)} (Debian: slurm-wlm, munge; make slurm)")
        return
    with tempfile.TemporaryDirectory(prefix="agglearn.") as name:
        folder = Path(name)
        folder.chmod(0o711)  # munged wants a way to its socket
        (folder / "slurm").mkdir()
        with slurm(folder / "slurm") as environment:
            reproduce(folder / "cluster", environment, settings, ["--workflow-profile", "profiles/slurm", *QUICK])
            states = ["squeue", "-h", "-t", "all", "-o", "%T"]
            jobs = subprocess.run(states, env=environment, capture_output=True, text=True).stdout.split()
        reproduce(folder / "machine", dict(os.environ), settings, [])
        here, there = measures(folder / "machine"), measures(folder / "cluster")
        if not here.equals(there):
            sys.exit("agglearn: the cluster has other measurements than this machine\n" + str(here.compare(there)))
        print(f"agglearn: {len(here)} measurements of {SOURCE} are the same, from {len(jobs)} jobs of Slurm")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the daemons are ended
    main(sys.argv[1:])
