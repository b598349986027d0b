// SPDX-License-Identifier: Apache-2.0

// Access to the memory of another process in one copy by the kernel.
//
// Reads and writes require the right to trace that process (ptrace(2), "access mode checking"): the
// same user, no setuid program, and under Yama's ptrace_scope 1 a descendant, or permission by
// prctl(PR_SET_PTRACER) in the other process. The library does not grant that permission: it would
// open its memory to every process of the user. Errors report a refusal of the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <pccl/status.h>

namespace pccl::sys {

/// A random value that a process keeps at an address. It identifies the process: process ids are
/// reused, and exec(2) replaces a process's memory by another program's.
struct ProcessMark {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
};

/// A range of another process's memory, and a buffer of the same size here.
struct ProcessPiece {
    std::uint64_t there = 0;
    std::span<std::byte> here;
};

inline constexpr std::size_t kMostProcessPieces = 1000;

/// Fills `into` from `address` of the process with this mark and with `pid` in this namespace:
/// process_vm_readv(2). kUnavailable where that is refused, where the process or the memory is
/// gone, or where another process has its pid; then part may have been copied.
[[nodiscard]] PCCL_API Status read_process_memory(pid_t pid, const ProcessMark& mark,
                                                  std::uint64_t address, std::span<std::byte> into);

/// Does the same for up to kMostProcessPieces pieces with a total of 1 GiB, in one system call. The
/// kernel copies the pieces in order, then the mark, so the compared mark was read after all of
/// them.
[[nodiscard]] PCCL_API Status read_process_pieces(pid_t pid, const ProcessMark& mark,
                                                  std::span<const ProcessPiece> pieces);

/// A word of the other process that each system call writes first. If that write fails, nothing
/// else is written, however long this thread was stopped before the call. The other process thus
/// closes the gate by removing write access to the page.
struct ProcessGate {
    std::uint64_t address = 0;
};

/// Writes the pieces through the gate; returns false, with nothing written, where the gate is
/// closed. The mark is read before, to avoid writing to another process's memory, and after.
[[nodiscard]] PCCL_API Result<bool> write_process_pieces(pid_t pid, const ProcessMark& mark,
                                                         ProcessGate gate,
                                                         std::span<const ProcessPiece> pieces);

// The following functions do the same without a mark, in one system call. The caller must detect by
// other means that the process exists immediately before and after (liveness_futex.h).

[[nodiscard]] PCCL_API Status read_living_process(pid_t pid, std::span<const ProcessPiece> pieces);
/// Reads any length; one system call for each GiB.
[[nodiscard]] PCCL_API Status read_living_process(pid_t pid, std::uint64_t address,
                                                  std::span<std::byte> into);
[[nodiscard]] PCCL_API Result<bool> write_living_process(pid_t pid, ProcessGate gate,
                                                         std::span<const ProcessPiece> pieces);

}  // namespace pccl::sys
