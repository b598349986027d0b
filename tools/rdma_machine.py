#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command where there is RDMA: in one virtual machine, or in two with a link between them.

    tools/setup_rdma.sh && tools/rdma_machine.py run -- ibv_devinfo
    tools/rdma_machine.py run --machines 2 -- 'ibv_rc_pingpong -g 1 $([ $NODE = 1 ] || echo $PEER)'

Each machine is emulated by QEMU, so that it needs no virtualisation, and has Debian's kernel with
rdma_rxe: device rxe0 on eth0, which leads to the other machine alone, and rxe1 on dummy0. Its root
is the host's, read-only beneath an overlay in memory: programs, .venv and the clone are those of
the host at the same paths, and only what is written into build/rdma/io reaches the host. NODE is 1
or 2, ADDRESS the machine's IPv4 address, PEER that of the other one. Correctness is tested on it;
its speed means nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import mmap
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MADE = ROOT / "build/rdma"
CANNOT = 77  # as tools/setup_rdma.sh
KERNEL_OPTIONS = "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check"
TIMED_OUT = 124  # as timeout(1)
NO_STATUS = 125
BOOT_SECONDS = 90  # usually 5; others may use the CPUs
FAULT = re.compile(r"\b(BUG|Oops|WARNING|Kernel panic|soft lockup|rcu_\w+ detected)\b")


class Refused(Exception):
    """A refused command line; its text is the reason."""


class Machine:
    """A virtual machine, its folder of settings and results, and who reads its output."""

    def __init__(self, node: int, folder: Path, options: argparse.Namespace) -> None:
        self.node = node
        self.folder = folder / str(node)
        self.folder.mkdir()
        self.console = MADE / f"console-{node}.log"
        self.killed = False
        peer = f"10.77.0.{3 - node}" if options.machines == 2 else f"10.77.0.{node}"
        self._write("command", options.line + "\n")
        self._write(
            "settings",
            f"project={shlex.quote(str(ROOT))}\nnode={node}\npeer={peer}\ntimeout={options.timeout}\n",
        )
        self.console.unlink(missing_ok=True)
        self.complaints = MADE / f"qemu-{node}.log"
        with self.complaints.open("wb") as complaints:
            self.process = subprocess.Popen(
                self._qemu(options),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        self.reader = threading.Thread(
            target=self._copy_output, args=(f"{node}| " if options.machines == 2 else "",)
        )
        self.reader.start()

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def _qemu(self, options: argparse.Namespace) -> list[str]:
        def shared(tag: str, path: Path, more: str = "") -> list[str]:
            escaped = str(path).replace(",", ",,")
            return [
                *(
                    "-fsdev",
                    f"local,id={tag},path={escaped},security_model=none,multidevs=remap{more}",
                ),
                *("-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"),
            ]

        # The path of the socket is short: it is one of the working folder.
        server = "on" if self.node == 1 else "off"
        network = (
            f"stream,id=net,server={server},addr.type=unix,addr.path=link"
            if options.machines == 2
            else "hubport,id=net,hubid=0"
        )
        console = str(self.console).replace(",", ",,")
        # The machine ends with this program, however that ends.
        return [
            *("nice", "-n", "10", "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"),
            *(
                "-nodefaults",
                "-display",
                "none",
                "-no-reboot",
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max",
            ),
            *("-smp", str(options.cpus), "-m", str(options.memory)),
            *("-kernel", str(MADE / "vmlinux"), "-initrd", str(MADE / "initrd.gz")),
            # The kernel sometimes measures the frequency of an emulated TSC wrongly, by 1.8 times.
            # On a busy host, it counts too few interrupts of the timer, and stops.
            *("-append", f"{KERNEL_OPTIONS} tsc_early_khz={tsc_khz()}"),
            *("-chardev", f"file,id=tty,path={console}", "-serial", "chardev:tty"),
            # The command's output has a way of its own, where the kernel writes nothing.
            *("-chardev", "stdio,id=output,signal=off", "-device", "virtio-serial-pci"),
            *("-device", "virtserialport,chardev=output,name=output"),
            *shared("root", Path("/"), ",readonly=on"),
            *shared("machine", self.folder),
            *shared("io", MADE / "io"),
            *("-netdev", network),
            *("-device", f"virtio-net-pci,netdev=net,romfile=,mac=52:54:00:77:00:0{self.node}"),
        ]

    def _copy_output(self, prefix: str) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            text = line.decode(errors="replace")
            sys.stdout.write(prefix + text + ("" if text.endswith("\n") else "\n"))
            sys.stdout.flush()

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def is_over(self) -> bool:
        return self.has("status") or self.process.poll() is not None

    def status(self) -> int:
        return int((self.folder / "status").read_text()) if self.has("status") else NO_STATUS

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def console_lines(self) -> list[str]:
        files = [file for file in (self.complaints, self.console) if file.exists()]
        return [line for file in files for line in file.read_text(errors="replace").splitlines()]


def tsc_khz() -> int:
    """Measure the frequency of the host's time stamp counter, which an emulated CPU passes on."""
    with mmap.mmap(
        -1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    ) as code:
        code.write(bytes.fromhex("0f31 48c1e220 4809d0 c3"))  # rdtsc; shl rdx, 32; or rax, rdx; ret
        start_of_code = ctypes.c_char.from_buffer(code)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start_of_code))

        def pair() -> tuple[int, int, int]:
            before, ticks = time.monotonic_ns(), read()
            return time.monotonic_ns() - before, before, ticks

        # The pair with the shortest interruption is the best one.
        _, begun, first = min(pair() for _ in range(20))
        time.sleep(0.1)
        _, ended, last = min(pair() for _ in range(20))
        del start_of_code
    return (last - first) * 1_000_000 // (ended - begun)


def note(text: str) -> None:
    print(f"rdma_machine: {text}", file=sys.stderr, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line. Raises Refused."""

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> None:  # type: ignore[override]
            raise Refused(message)

    top = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    run = top.add_subparsers(dest="action", required=True).add_parser(
        "run", help="run a command in machines"
    )
    run.add_argument("--machines", type=int, default=1, help="1, or 2 with a link between them")
    run.add_argument("--cpus", type=int, default=1, help="of each; emulated, two take longer")
    run.add_argument("--memory", type=int, help="MiB of each; default 2048 for one, 1024 for two")
    run.add_argument(
        "--timeout", type=int, default=120, help="seconds until all are ended (exit status 124)"
    )
    run.add_argument(
        "--kill-after", type=float, help="seconds from start of the command to machine 2's death"
    )
    run.add_argument("command", nargs="+", help="a line for bash; several words are one command")
    options = run_options = top.parse_args(arguments)
    if options.machines not in (1, 2):
        raise Refused(f"--machines {options.machines}: 1 or 2")
    if options.timeout < 1:
        raise Refused(f"--timeout {options.timeout}: at least 1 s")
    if options.kill_after is not None and options.machines != 2:
        raise Refused("--kill-after ends machine 2: add --machines 2")
    if options.kill_after is not None and not 0 <= options.kill_after < options.timeout:
        raise Refused(
            f"--kill-after {options.kill_after}: from 0 to less than --timeout {options.timeout}"
        )
    if not 1 <= options.cpus <= 8:
        raise Refused(f"--cpus {options.cpus}: from 1 to 8")
    if options.memory is None:
        options.memory = 2048 // options.machines
    if options.memory < 512:
        raise Refused(f"--memory {options.memory}: at least 512 MiB, for the kernel and Python")
    options.line = options.command[0] if len(options.command) == 1 else shlex.join(options.command)
    return run_options


@contextlib.contextmanager
def only_one(folder: Path):
    """Wait until no other program runs machines of this clone."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("waits for another run in this clone")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(
    options: argparse.Namespace, folder: Path, machines: list[Machine], deadline: float
) -> None:
    """Start the machines; the second one connects to a socket that the first makes."""
    for node in range(1, options.machines + 1):
        machines.append(Machine(node, folder, options))
        while options.machines == 2 and not (folder / "link").exists():
            if machines[0].is_over() or time.monotonic() > deadline:
                return
            time.sleep(0.02)


def wait(options: argparse.Namespace, machines: list[Machine], deadline: float) -> bool:
    """Wait until all commands have ended, and return whether they did. Kill machine 2 in time."""
    begun = time.monotonic()
    started_at = None
    while not all(machine.is_over() for machine in machines):
        now = time.monotonic()
        started = all(machine.has("started") for machine in machines)
        if now > deadline or (not started and now > begun + BOOT_SECONDS):
            return False
        if started and started_at is None:
            started_at = now
            note(f"the command starts after {now - begun:.1f} s")
        if started_at is not None and options.kill_after is not None:
            over = machines[1].killed or machines[1].is_over()
            if now >= started_at + options.kill_after and not over:
                note("kills machine 2")
                machines[1].killed = True
                machines[1].end()
        time.sleep(0.05)
    return True


def report(machines: list[Machine], in_time: bool, options: argparse.Namespace) -> int:
    """Print what went wrong and return the exit status."""
    statuses = [NO_STATUS]
    for machine in machines:
        faults = [line for line in machine.console_lines() if FAULT.search(line)]
        for line in faults[:5]:
            note(f"kernel of machine {machine.node}: {line} (all in {machine.console})")
        if machine.killed:
            continue
        statuses.append(machine.status())
        if machine.has("status"):
            continue
        if in_time:
            why = "ended without an exit status of its command"
        elif machine.has("started"):
            why = f"was ended after {options.timeout} s (--timeout)"
        else:
            why = "did not start the command"
        note(f"machine {machine.node} {why}; its console:")
        for line in machine.console_lines()[-15:]:
            print(f"    {line}", file=sys.stderr)
    if not all(machine.killed or machine.has("started") for machine in machines):
        return CANNOT
    if not in_time:
        return TIMED_OUT
    return max(statuses[1:] or statuses)


def run(options: argparse.Namespace) -> int:
    """Run the command in machines and return the greatest exit status of those not killed."""
    machines: list[Machine] = []
    folder = MADE / "run"
    (MADE / "io").mkdir(exist_ok=True)
    with only_one(MADE):
        begun = time.monotonic()
        deadline = begun + options.timeout
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            start(options, folder, machines, deadline)
            in_time = wait(options, machines, deadline)
        finally:
            for machine in machines:
                machine.end()
        status = report(machines, in_time, options)
        note(f"{time.monotonic() - begun:.1f} s in all")
    return status


def main(arguments: list[str]) -> int:
    try:
        options = parse(arguments)
    except Refused as refused:
        note(str(refused))
        return 2
    if not all((MADE / name).exists() for name in ("vmlinux", "initrd.gz")):
        note("build/rdma has no kernel: run tools/setup_rdma.sh")
        return CANNOT
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return run(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
