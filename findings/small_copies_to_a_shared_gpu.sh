#!/usr/bin/env bash
# Copies of fewer than 32 KiB from pinned memory to a GPU that another process uses, too.
#
# Library: libcuda.so.1, CUDA 13.0, driver 580.159.04, one H200 without MPS; called by Python's ctypes, nothing else.
# Guess:   a copy by cuMemcpyAsync goes by a copy engine, which other processes' kernels do not hold up; if it is slow,
#          a kernel that reads mapped memory is the way round it.
# Seen:    while another process on the GPU copies as well, cuMemcpyAsync from the host takes 265 us for 2 bytes to 16 KiB, 219
#          for 24 KiB, and 11 for 32,767 bytes and more; to the host 9 us at every size. The same bytes as two rows of
#          cuMemcpy2DAsync take 9 us, as one row 265. A kernel that copies from mapped memory takes 275. (Few bytes travel in
#          the commands of the stream, which run in the process's time slice; what has rows is left to an engine.)
# Exit:    0 as seen, 1 it has changed, 77 no such GPU here (the reason is printed).
set -euo pipefail
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/copies.py" <<'PYTHON'
import ctypes
import multiprocessing
import statistics
import sys
import time

SIZES = (64, 1024, 16384, 65536)
ROUNDS = 100
HOST, DEVICE = 1, 2  # CUmemorytype
MPS_ENABLED = 133  # CUdevice_attribute


class Copy2D(ctypes.Structure):  # CUDA_MEMCPY2D
    _fields_ = [
        ("src_x", ctypes.c_size_t), ("src_y", ctypes.c_size_t), ("src_type", ctypes.c_int),
        ("src_host", ctypes.c_void_p), ("src_device", ctypes.c_uint64), ("src_array", ctypes.c_void_p),
        ("src_pitch", ctypes.c_size_t),
        ("dst_x", ctypes.c_size_t), ("dst_y", ctypes.c_size_t), ("dst_type", ctypes.c_int),
        ("dst_host", ctypes.c_void_p), ("dst_device", ctypes.c_uint64), ("dst_array", ctypes.c_void_p),
        ("dst_pitch", ctypes.c_size_t),
        ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
    ]


def times_of(rank, barrier, results):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {status}")

    device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, pinned = ctypes.c_uint64(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuStreamCreate", ctypes.byref(stream), 1)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1 << 20))
    call("cuMemAllocHost_v2", ctypes.byref(pinned), ctypes.c_size_t(1 << 20))

    def one_row(size):
        call("cuMemcpyHtoDAsync_v2", memory, pinned, ctypes.c_size_t(size), stream)

    def two_rows(size):
        half = size // 2
        rows = Copy2D(src_type=HOST, src_host=pinned, src_pitch=half, dst_type=DEVICE,
                      dst_device=memory, dst_pitch=half, width=half, height=2)
        call("cuMemcpy2DAsync_v2", ctypes.byref(rows), stream)

    found = {}
    for copy in (one_row, two_rows):
        for size in SIZES:
            barrier.wait()
            taken = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                copy(size)
                call("cuStreamSynchronize", stream)
                taken.append(time.perf_counter() - begin)
            found[copy.__name__, size] = statistics.median(taken) * 1e6
    if rank == 0:
        results.put(found)


def main():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print(error)
        return 77
    has_mps, count = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        print("no GPU")
        return 77
    cuda.cuDeviceGetAttribute(ctypes.byref(has_mps), MPS_ENABLED, 0)
    if has_mps.value:
        print("MPS is on: processes do not take turns")
        return 77
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    ranks = [context.Process(target=times_of, args=(rank, barrier, results)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    found = results.get()
    for rank in ranks:
        rank.join(60)
    for (name, size), micros in found.items():
        print(f"{name:<9} {size:>6} bytes {micros:8.1f} us")
    slow = all(found["one_row", size] > 5 * found["two_rows", size] for size in SIZES[:3])
    alike = found["one_row", SIZES[3]] < 3 * found["two_rows", SIZES[3]]
    print("as seen" if slow and alike else "it has changed")
    return 0 if slow and alike else 1


if __name__ == "__main__":
    sys.exit(main())
PYTHON
timeout 120 python3 "$folder/copies.py"
