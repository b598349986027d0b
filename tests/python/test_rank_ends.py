# SPDX-License-Identifier: Apache-2.0
"""How ranks of ``pccl.run`` and ``pccl run`` end: what is told of it, and what ends with them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl.launch import processes as rank_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PCCL_RUN = [sys.executable, "-m", "pccl", "run"]
PATIENCE = 60.0


def is_alive(pid: int) -> bool:
    try:
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]  # noqa: PTH123, SIM115
    except OSError:
        return False
    return state != "Z"


def await_that(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, "nothing has happened"
        time.sleep(0.05)


def pids_in(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def script_of(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return str(path)


def run_script(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PCCL_RUN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        cwd=cwd,
    )


# What is told of a rank that ends.


def test_a_rank_that_ends_with_code_0_has_not_returned() -> None:
    def leave(comm: pccl.Communicator) -> int:
        if comm.rank == 1:
            os._exit(0)
        return 5

    with pytest.raises(
        pccl.launch.RankError, match="rank 1 ended with exit code 0 before its function"
    ):
        pccl.run(leave, ranks=2)
    with pytest.raises(
        pccl.launch.RankError, match="rank 0 ended with exit code 0 before its function"
    ):
        pccl.run(lambda _: os._exit(0), ranks=1)


def test_the_others_do_not_go_on_for_ever_after_a_silent_end() -> None:
    def leave(comm: pccl.Communicator) -> None:
        if comm.rank == 1:
            os._exit(0)
        time.sleep(600)

    with pytest.raises(pccl.launch.RankError, match="rank 1 ended with exit code 0"):
        pccl.run(leave, ranks=3)


def test_a_signal_is_named() -> None:
    def die(comm: pccl.Communicator) -> None:
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    with pytest.raises(
        pccl.launch.RankError, match=r"rank 1 was killed by signal 9 \(SIGKILL\) before"
    ):
        pccl.run(die, ranks=2)


def test_an_end_after_the_function_is_reported_as_that() -> None:
    def end_later(comm: pccl.Communicator) -> int:
        import atexit

        atexit.register(os._exit, 7)
        return comm.rank

    with pytest.raises(
        pccl.launch.RankError, match="rank 0 ended with exit code 7 after its function"
    ):
        pccl.run(end_later, ranks=1)


def test_a_child_that_comes_out_of_the_function_is_no_rank() -> None:
    def fork(comm: pccl.Communicator) -> str:
        if os.fork() == 0:
            return "child"
        os.wait()
        return f"rank {comm.rank}"

    assert pccl.run(fork, ranks=2) == ["rank 0", "rank 1"]


HOW = {
    "sys.exit(3)": ("ended with exit code 3", 3),
    "os._exit(9)": ("ended with exit code 9", 9),
    "os.kill(os.getpid(), 9)": (r"was killed by signal 9 \(SIGKILL\)", 137),
    "os.kill(os.getpid(), 11)": (r"was killed by signal 11 \(SIGSEGV\)", 139),
    "os.kill(os.getpid(), 40)": (r"was killed by signal 40( \(\S+\))?", 168),
}


def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    script = script_of(tmp_path, "print('lost', end='')\n")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*PCCL_RUN, "-n", "2", script],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    assert (done.returncode, done.stderr) == (2, "pccl: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("options", [[], ["--keep-going"]])
def test_the_code_of_a_rank_that_failed_counts_more_than_its_lost_output(
    tmp_path: Path, options: list[str]
) -> None:
    script = script_of(tmp_path, "import sys\nprint('lost', flush=True)\nsys.exit(3)\n")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*PCCL_RUN, *options, "-n", "1", script],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    assert done.returncode == 3
    assert "its output cannot be written: No space left on device" in done.stderr


SHORT_OF_DESCRIPTORS = r"""
import os, resource
import pccl

def nothing(comm): return comm.rank

assert pccl.run(nothing, ranks=1) == [0]  # imports what is imported at the first use
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
for left in range(1, 10):
    held = []
    try:
        while True: held.append(os.dup(0))
    except OSError:
        pass
    for _ in range(left): os.close(held.pop())
    try:
        print(pccl.run(nothing, ranks=2))
    except pccl.Error as error:
        print(f"{type(error).__name__}: {error}")
    for number in held: os.close(number)
print(pccl.run(nothing, ranks=2))
"""
SHORTAGE = (
    "ranks cannot be started and watched: Too many open files; this process may have {} "
    "(ulimit -n): raise the limit, or start fewer ranks"
)


def test_a_starter_without_descriptors_names_the_limit(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, script_of(tmp_path, SHORT_OF_DESCRIPTORS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.stderr == ""
    *short, last = done.stdout.splitlines()
    assert last == "[0, 1]"
    assert set(short) == {f"ResourceExhaustedError: {SHORTAGE.format(48)}"}


def test_the_command_names_the_limit_of_descriptors(tmp_path: Path) -> None:
    script = script_of(tmp_path, "")
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 16; exec "$@"', "sh", *PCCL_RUN, "-n", "4", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (2, f"pccl: {SHORTAGE.format(16)}\n")


@pytest.mark.parametrize("how", HOW)
def test_one_line_names_the_rank_that_failed(tmp_path: Path, how: str) -> None:
    script = script_of(
        tmp_path,
        "import os, sys, time\n"
        "if os.environ['RANK'] == '1':\n"
        f"    print('pid', os.getpid()); {how}\n"
        "time.sleep(600)\n",
    )
    done = run_script("-n", "3", "--grace", "0.5", script)
    text, code = HOW[how]
    assert done.returncode == code, done.stderr
    (pid,) = re.findall(r"\[1\] pid (\d+)", done.stdout)
    line = rf"pccl run: rank 1 \(pid {pid}\) {text}; the others were ended 0\.5 s later\n"
    assert re.fullmatch(line, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("ranks", "rest", "told"),
    [
        (1, "", ""),
        (2, "time.sleep(600)", "; rank 0 was ended 1 s later"),
        (3, "time.sleep(0.2)", "; the others ended by themselves"),
        (3, "time.sleep(0 if rank == 2 else 600)", "; rank 0 was ended 1 s later"),
    ],
)
def test_the_line_reports_the_other_ranks(tmp_path: Path, ranks: int, rest: str, told: str) -> None:
    script = script_of(
        tmp_path,
        "import os, sys, time\n"
        "rank = int(os.environ['RANK'])\n"
        "if rank == int(os.environ['WORLD_SIZE']) // 2: sys.exit(4)\n"
        f"{rest}\n",
    )
    done = run_script("-n", str(ranks), "--grace", "1", script)
    assert done.returncode == 4
    line = rf"pccl run: rank {ranks // 2} \(pid \d+\) ended with exit code 4{told}\n"
    assert re.fullmatch(line, done.stderr), done.stderr


# Going on without a rank.

SURVIVE = """
import os, signal, sys, time
import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://")
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
x = np.ones(1)
try:
    while True:
        comm.all_reduce(x)
except pccl.PeerLostError:
    comm = comm.shrink()
began = time.monotonic()
while time.monotonic() - began < 7:  # longer than the grace and SIGTERM
    time.sleep(0.1)
    comm.barrier()
print("finished with", comm.world_size)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_survivors_of_a_script_end_well(tmp_path: Path, code: int) -> None:
    done = run_script("-n", "3", "--keep-going", script_of(tmp_path, SURVIVE), str(code))
    assert sorted(done.stdout.splitlines()) == ["[0] finished with 2", "[2] finished with 2"]
    assert done.returncode == (0 if code == 0 else 137), done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("pccl run: ")]
    assert re.fullmatch(
        r"pccl run: rank 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\); the others go on",
        told[0],
    )
    assert len(told) == (1 if code == 0 else 3)


def test_survivors_of_a_function_end_well() -> None:
    def survive(comm: pccl.Communicator) -> int:
        if comm.rank == 1:
            raise ValueError("no such shape")
        if comm.rank == 2:
            os._exit(0)
        with contextlib.suppress(pccl.PeerLostError):
            while True:
                comm.barrier()
        left = comm.shrink(least=1)
        began = time.monotonic()
        while time.monotonic() - began < 7:
            time.sleep(0.1)
            left.barrier()
        return left.world_size

    first, raised, silent, last = pccl.run(survive, ranks=4, keep_going=True)
    assert first == last == 2
    assert isinstance(raised, pccl.launch.RankError)
    assert raised.rank == 1
    assert str(raised).startswith("rank 1 raised ValueError: no such shape\n")
    assert isinstance(silent, pccl.launch.RankError)
    assert silent.rank == 2
    assert "ended with exit code 0 before its function returned" in str(silent)


def test_where_no_rank_returns_going_on_raises() -> None:
    def fail(comm: pccl.Communicator) -> int:
        raise ValueError(f"no {comm.rank}")

    with pytest.raises(pccl.launch.RankError, match="raised ValueError: no "):
        pccl.run(fail, ranks=2, keep_going=True)


def test_where_all_return_going_on_changes_nothing() -> None:
    assert pccl.run(lambda comm: comm.rank, ranks=2, keep_going=True) == [0, 1]


# What ends with a rank.

STUBBORN = """
import os, signal, sys, time
from pathlib import Path

if os.fork() == 0:
    if sys.argv[2] == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.argv[2] == "group":
        os.setpgid(0, 0)
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(600)
while len(os.listdir(sys.argv[1])) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
if sys.argv[3] == "stay":
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["plain", "stubborn", "group"])
def test_children_go_with_their_rank(tmp_path: Path, kind: str) -> None:
    (tmp_path / "pids").mkdir()
    began = time.monotonic()
    script = script_of(tmp_path, STUBBORN)
    done = run_script("-n", "4", script, str(tmp_path / "pids"), kind, "leave")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 15  # each of 8 pipes once took 2 s
    children = pids_in(tmp_path / "pids")
    assert len(children) == 4
    assert [pid for pid in children if is_alive(pid)] == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_children_go_with_the_starter(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "pids").mkdir()
    script = script_of(tmp_path, STUBBORN)
    starter = subprocess.Popen(
        [*PCCL_RUN, "-n", "2", "--grace", "0.5", script, tmp_path / "pids", "stubborn", "stay"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert starter.stdout is not None
    for _ in range(2):
        assert starter.stdout.readline().endswith(b"up\n")
    children = pids_in(tmp_path / "pids")
    assert len(children) == 2
    starter.send_signal(how)
    starter.wait(PATIENCE)
    await_that(lambda: not any(map(is_alive, children)))
    starter.stdout.close()


def test_children_of_a_function_go_with_their_rank(tmp_path: Path) -> None:
    def fork(comm: pccl.Communicator) -> int:
        if os.fork() == 0:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(600)
        while len(pids_in(tmp_path)) < comm.world_size:
            time.sleep(0.01)
        return comm.rank

    assert pccl.run(fork, ranks=3) == [0, 1, 2]
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []


def test_children_go_with_a_rank_that_is_killed_while_others_go_on(tmp_path: Path) -> None:
    def survive(comm: pccl.Communicator) -> bool:
        if comm.rank == 0:
            await_that(lambda: bool(pids_in(tmp_path)))
            (child,) = pids_in(tmp_path)
            await_that(lambda: not is_alive(child))
            return True
        if os.fork() == 0:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(600)
        await_that(lambda: bool(pids_in(tmp_path)))
        os._exit(1)

    assert pccl.run(survive, ranks=2, keep_going=True)[0] is True


def test_a_process_with_a_session_of_its_own_stays_and_holds_up_nobody(tmp_path: Path) -> None:
    def fork(_: pccl.Communicator) -> int:
        if os.fork() == 0:
            os.setsid()
            (tmp_path / str(os.getpid())).touch()
            time.sleep(600)
        await_that(lambda: bool(pids_in(tmp_path)))
        print("last word")
        return 1

    began = time.monotonic()
    assert pccl.run(fork, ranks=1) == [1]
    assert time.monotonic() - began < 15
    (child,) = pids_in(tmp_path)
    assert is_alive(child)
    os.kill(child, signal.SIGKILL)


# Ctrl-C.

SAVES = """
import os, sys, time

try:
    print("up", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("saved", flush=True)
    time.sleep(float(sys.argv[1]))
    print("left", flush=True)
"""


@contextlib.contextmanager
def started(*command: object) -> Iterator[subprocess.Popen[str]]:
    starter = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert starter.stdout is not None
    try:
        for _ in range(2):
            assert starter.stdout.readline().endswith("up\n")
        yield starter
    finally:
        starter.kill()
        starter.communicate()


def test_ranks_may_save_at_ctrl_c(tmp_path: Path) -> None:
    with started(*PCCL_RUN, "-n", "2", script_of(tmp_path, SAVES), "1") as starter:
        starter.send_signal(signal.SIGINT)
        out, err = starter.communicate(timeout=PATIENCE)
    assert sorted(out.splitlines()) == ["[0] left", "[0] saved", "[1] left", "[1] saved"]
    assert err == ""
    assert starter.returncode == 130


def test_after_ctrl_c_ranks_have_the_grace(tmp_path: Path) -> None:
    script = script_of(tmp_path, SAVES)
    with started(*PCCL_RUN, "-n", "2", "--grace", "1", script, "600") as starter:
        starter.send_signal(signal.SIGINT)
        out, err = starter.communicate(timeout=PATIENCE)
    assert sorted(out.splitlines()) == ["[0] saved", "[1] saved"]
    assert err == (
        "pccl run: signal 2 (SIGINT) was passed on to all ranks; ranks 0, 1 were ended 1 s later\n"
    )
    assert starter.returncode == 130


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    script = script_of(tmp_path, SAVES)
    with started(*PCCL_RUN, "-n", "2", "--grace", "600", script, "600") as starter:
        assert starter.stdout is not None
        starter.send_signal(signal.SIGINT)
        for _ in range(2):
            assert starter.stdout.readline().endswith("saved\n")
        starter.send_signal(signal.SIGINT)
        starter.communicate(timeout=PATIENCE)
    assert starter.returncode == 130


def test_sigterm_is_passed_on(tmp_path: Path) -> None:
    script = script_of(
        tmp_path,
        "import signal, sys, time\n"
        "def leave(*_): print('told'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)\n",
    )
    with started(*PCCL_RUN, "-n", "2", script) as starter:
        starter.send_signal(signal.SIGTERM)
        out, err = starter.communicate(timeout=PATIENCE)
    assert sorted(out.splitlines()) == ["[0] told", "[1] told"]
    assert err == ""
    assert starter.returncode == 143


def test_a_function_may_save_at_ctrl_c(tmp_path: Path) -> None:
    script = script_of(
        tmp_path,
        "import time\n"
        "import pccl\n"
        "def work(comm):\n"
        "    try:\n"
        "        print('up', flush=True)\n"
        "        time.sleep(600)\n"
        "    except KeyboardInterrupt:\n"
        "        print('saved', flush=True)\n"
        "pccl.run(work, ranks=2)\n",
    )
    with started(sys.executable, script) as starter:
        starter.send_signal(signal.SIGINT)
        out, err = starter.communicate(timeout=PATIENCE)
    assert sorted(out.splitlines()) == ["[0] saved", "[1] saved"]
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert starter.returncode == -signal.SIGINT


# What ranks import.

SPIES = ["cloudpickle", "numpy", "ctypes", "json", "copies", "sitecustomize", "usercustomize"]


@pytest.fixture
def spied(tmp_path: Path) -> Path:
    """Return a folder of modules that have no business in a rank."""
    folder = tmp_path / "spied"
    folder.mkdir()
    for name in SPIES:
        (folder / f"{name}.py").write_text(f"import os; os.write(2, b'spy {name}\\n'); os._exit(7)")
    return folder


def test_functions_import_nothing_from_the_working_directory(tmp_path: Path, spied: Path) -> None:
    script = script_of(
        tmp_path,
        "import pccl\n"
        "import beside\n"
        "def f(comm):\n"
        "    import beside, sys\n"
        "    return beside.VALUE + comm.rank, sys.path\n"
        "import sys\n"
        "for rank, (value, path) in enumerate(pccl.run(f, ranks=2)):\n"
        "    assert value == 3 + rank and path == sys.path, path\n",
    )
    (tmp_path / "beside.py").write_text("VALUE = 3")
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        cwd=spied,
    )
    assert done.returncode == 0, done.stderr
    assert "spy" not in done.stderr


def test_scripts_import_what_python_would(tmp_path: Path, spied: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 3")
    text = "import ctypes, json, numpy, beside\nprint(beside.VALUE)\n"
    script = script_of(tmp_path, text)
    (tmp_path / "installed").mkdir()
    pccl_command = tmp_path / "installed" / "pccl-command.py"
    pccl_command.write_text("from pccl.cli import main\nif __name__ == '__main__': main()\n")
    done = subprocess.run(
        [sys.executable, pccl_command, "run", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        cwd=spied,
    )
    assert sorted(done.stdout.splitlines()) == ["[0] 3", "[1] 3"], done.stderr
    done = run_script("-m", "script", cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == ["[0] 3", "[1] 3"], done.stderr


@pytest.mark.parametrize("command", ["info", "bench all_reduce --max 1K"])
@pytest.mark.skipif(sys.version_info < (3, 11), reason="spawn of Python 3.10 imports from there")
def test_other_commands_import_nothing_from_the_working_directory(
    tmp_path: Path, spied: Path, command: str
) -> None:
    pccl_command = tmp_path / "pccl-command.py"
    pccl_command.write_text("from pccl.cli import main\nif __name__ == '__main__': main()\n")
    (spied / "pickle.py").write_text("import os; os.write(2, b'spy pickle\\n'); os._exit(7)")
    starter = subprocess.Popen(
        [sys.executable, pccl_command, *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=spied,
    )
    try:
        out, _ = starter.communicate(timeout=10 * PATIENCE)
    finally:
        starter.kill()
    assert "spy" not in out
    assert starter.returncode == 0, out


# Hosts.

NAMESPACE = """
set -e
ip link set lo up
ip -4 addr flush dev lo
{then}
"""


def in_namespace(then: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("only root makes network namespaces, with ip and unshare")
    return subprocess.run(
        ["unshare", "-n", "bash", "-c", then],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def test_ranks_meet_where_there_is_ipv6_alone(tmp_path: Path) -> None:
    script = script_of(
        tmp_path,
        "import os, numpy as np, pccl\n"
        "comm = pccl.Communicator(rendezvous='env://')\n"
        "x = np.ones(2)\n"
        "comm.all_reduce(x)\n"
        "print(os.environ['MASTER_ADDR'], x[0])\n",
    )
    then = f"{sys.executable} -m pccl run -n 2 {script}"
    done = in_namespace(NAMESPACE.format(then=then))
    assert sorted(done.stdout.splitlines()) == ["[0] ::1 2.0", "[1] ::1 2.0"], done.stderr
    function = "import pccl; print(pccl.run(lambda comm: comm.rank, ranks=2))"
    done = in_namespace(NAMESPACE.format(then=f"{sys.executable} -c '{function}'"))
    assert done.stdout == "[0, 1]\n", done.stderr


def test_a_host_without_loopback_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
    monkeypatch.setattr(rank_processes, "_LOOPBACKS", elsewhere)
    with pytest.raises(
        pccl.UnavailableError,
        match=r"no loopback address \(192.0.2.1: .*; 2001:db8::1: .*\); bring",
    ):
        pccl.run(lambda comm: comm.rank, ranks=2)


# What ranks print.


def test_a_pipe_that_is_closed_ends_the_job_quietly(tmp_path: Path) -> None:
    script = script_of(tmp_path, "import time\nfor i in range(10**6): print(i)\ntime.sleep(600)\n")
    run = " ".join([*PCCL_RUN, "-n", "2", script])
    done = subprocess.run(
        ["bash", "-c", f"{run} | head -n 3; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.stdout.splitlines()[3] == "141"
    assert done.stderr == ""


def test_a_closed_stdout_does_not_take_the_results() -> None:
    code = (
        "import sys, pccl\n"
        "def f(comm): print('x' * 100000); return comm.rank\n"
        "found = pccl.run(f, ranks=2)\n"
        "sys.stderr.write(str(found))\n"
    )
    for how in ("| true", ">&-"):
        done = subprocess.run(
            ["bash", "-c", f'{sys.executable} -c "$1" {how}', "-", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.stderr.startswith("[0, 1]"), done.stderr
        assert "_pass_on" not in done.stderr


def test_a_line_without_end_takes_little_memory(tmp_path: Path) -> None:
    nbytes = 100_000_000
    text = f"import os\nfor _ in range(100): os.write(1, b'x' * {nbytes // 100})\n"
    # By a small process: what a child takes counts from what its parent had.
    measured = (
        "import resource, subprocess, sys\n"
        "code = subprocess.call(sys.argv[2:], stdout=open(sys.argv[1], 'w'))\n"
        "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    command = [*PCCL_RUN, "-n", "1", script_of(tmp_path, text)]
    done = subprocess.run(
        [sys.executable, "-c", measured, tmp_path / "out", *command],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    code, kib = map(int, done.stdout.split())
    assert code == 0, done.stderr
    assert kib < 100 << 10  # 408 MB once
    passed_on = (tmp_path / "out").read_text().splitlines()
    assert all(line.startswith("[0] x") for line in passed_on)
    assert sum(len(line) - len("[0] ") for line in passed_on) == nbytes


def test_what_the_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    code = "import os\nos.write(1, 'ä\\nend\\n'.encode())\n"
    done = subprocess.run(
        [*PCCL_RUN, "-n", "1", script_of(tmp_path, code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
    )
    assert done.stdout.splitlines() == ["[0] \\xe4", "[0] end"], done.stderr


def test_output_is_whole_and_in_order(tmp_path: Path) -> None:
    text = (
        "for i in range(20000): print(i, 'ä', end='\\r\\n' if i % 2 else '\\n')\n"
        "print('end', end='')\n"
    )
    done = run_script("-n", "2", script_of(tmp_path, text))
    for rank in range(2):
        own = [line for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
        assert own == [*(f"[{rank}] {i} ä" for i in range(20000)), f"[{rank}] end"]
