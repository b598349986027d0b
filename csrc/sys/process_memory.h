// Another process's memory, read and written in one copy by the kernel.
//
// Both need the right to trace that process (ptrace(2), "access mode checking"): the same user, no
// setuid program, and under Yama's ptrace_scope 1 a descendant, or leave that the other one gave by
// prctl(PR_SET_PTRACER). The library gives no such leave: it would open its memory to every process
// of the user. Where the kernel refuses, errors say so.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "csrc/base/status.h"

namespace pccl::sys {

/// What a process keeps at an address, and nobody else knows: numbers of processes are given out
/// again, and exec(2) puts another program's memory in the place of one's own.
struct ProcessMark {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
};

/// Memory of another process, and as much of this one.
struct ProcessPiece {
    std::uint64_t there = 0;
    std::span<std::byte> here;
};

inline constexpr std::size_t kMostProcessPieces = 1000;

/// Fills `into` with what lies at `address` of the process with this mark, which is `pid` as this
/// one numbers it: process_vm_readv(2). kUnavailable where that is refused, the process or the
/// memory is gone, or another process has its place; then part may have been copied.
[[nodiscard]] PCCL_API Status read_process_memory(pid_t pid, const ProcessMark& mark,
                                                  std::uint64_t address, std::span<std::byte> into);

/// The same for up to kMostProcessPieces pieces, of 1 GiB together, in one call of the kernel,
/// which copies them in their order, and then the mark: what is at the mark's address after all
/// have been read is what is compared.
[[nodiscard]] PCCL_API Status read_process_pieces(pid_t pid, const ProcessMark& mark,
                                                  std::span<const ProcessPiece> pieces);

/// A word of the other process that each call of the kernel which writes there writes first. Where
/// that fails, nothing else is written, however long this thread was stopped before the call: so
/// the other process shuts the gate by taking the page's rights away.
struct ProcessGate {
    std::uint64_t address = 0;
};

/// Writes what lies here, through the gate; false, and nothing written, where that is shut. The
/// mark is read before, lest another process's memory be written, and after.
[[nodiscard]] PCCL_API Result<bool> write_process_pieces(pid_t pid, const ProcessMark& mark,
                                                         ProcessGate gate,
                                                         std::span<const ProcessPiece> pieces);

// The same without a mark, in one call of the kernel, for who sees by other means that the process
// is there, right before and after (liveness_futex.h):

[[nodiscard]] PCCL_API Status read_living_process(pid_t pid, std::span<const ProcessPiece> pieces);
/// Of any length; in one call of the kernel for each GiB.
[[nodiscard]] PCCL_API Status read_living_process(pid_t pid, std::uint64_t address,
                                                  std::span<std::byte> into);
[[nodiscard]] PCCL_API Result<bool> write_living_process(pid_t pid, ProcessGate gate,
                                                         std::span<const ProcessPiece> pieces);

}  // namespace pccl::sys
