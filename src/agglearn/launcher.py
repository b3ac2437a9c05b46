"""What Snakemake starts for a job in place of Python: it lets a child of the prefork server run the script.

Python starts this file by its path, without `site` and without the package, for each job: it imports next to nothing.
"""

import marshal
import os
import signal
import socket
import sys

SCRIPT, TRACKS = b".", b"t"  # first byte of a message to the prefork server: a script follows, MLflow will be needed
ALONE = 75  # exit status of a script that Python itself must run


def main(python: str, address: str, *arguments: str) -> int:
    """Exit status of the script. Where no prefork server takes it, this process becomes Python."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = None
    if len(arguments) == 1 and arguments[0].endswith(".py"):
        status = ask(address, arguments[0])
    if status is None or status == ALONE:
        os.execv(python, [python, *arguments])
    return status


def ask(address: str, script: str) -> int | None:
    """Exit status of a script that a child of the server runs here, in this environment. None where it is not taken."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(address)
            line.sendall(SCRIPT)
            accepted = line.recv(1)
        except OSError:
            return None
        if not accepted:
            return None
        socket.send_fds(line, [b"."], [1, 2])
        line.sendall(marshal.dumps((os.getcwd(), dict(os.environ), os.path.abspath(script))))
        answer = line.recv(1)
    if not answer:
        print("agglearn: error: the process of the job was killed", file=sys.stderr)
        return 1
    return answer[0]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
