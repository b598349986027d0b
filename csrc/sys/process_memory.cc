// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "csrc/base/assert.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

// Most bytes of a system call; the kernel moves less than 2 GiB in one.
constexpr std::size_t kMostAtOnce = 1024 * kMiB;

iovec remote(std::uint64_t address, std::size_t bytes) {
    return {reinterpret_cast<void*>(address), bytes};  // NOLINT: the other's address
}

/// Both sides of the pieces, with room for a mark or a gate.
struct Vectors {
    Vectors() = default;
    explicit Vectors(std::span<const ProcessPiece> pieces) { add(pieces); }
    void add(std::span<const ProcessPiece> pieces) {
        PCCL_ASSERT(pieces.size() <= kMostProcessPieces);
        for (const ProcessPiece& piece : pieces)
            add({piece.here.data(), piece.here.size()}, remote(piece.there, piece.here.size()));
    }
    void add(const iovec& own, const iovec& theirs) {
        here[count] = own;
        there[count++] = theirs;
        bytes += own.iov_len;
    }

    std::array<iovec, kMostProcessPieces + 1> here;
    std::array<iovec, kMostProcessPieces + 1> there;
    std::size_t count = 0;
    std::size_t bytes = 0;
};

std::string why_refused() {
    const auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope", 16);
    if (!scope.is_ok() || scope->starts_with("0")) return " (ptrace(2) rules: another user?)";
    return concat(" (kernel.yama.ptrace_scope is ", scope->substr(0, 1),
                  ": it takes 0, or that process's leave by prctl(PR_SET_PTRACER))");
}

/// Returns the error of a transfer. `error` is 0 where the kernel moved only a part, or the mark
/// differed.
Status fault(int error, const std::string& what) {
    if (error == 0) return Status::unavailable(concat(what, ": its memory is not what it was"));
    const std::string reason = error == EPERM ? why_refused() : "";
    return Status::unavailable(Status::from_errno(error, what).message() + reason);
}

/// Reads in pieces that the kernel moves in one call; at least one, which may be empty.
template <typename Read>
Status read_in_pieces(std::uint64_t address, std::span<std::byte> into, const Read& read) {
    do {
        const ProcessPiece piece{address, into.first(std::min(into.size(), kMostAtOnce))};
        PCCL_TRY(read(std::span(&piece, 1)));
        address += piece.here.size();
        into = into.subspan(piece.here.size());
    } while (!into.empty());
    return Status::ok();
}

}  // namespace

Status read_process_pieces(pid_t pid, const ProcessMark& mark,
                           std::span<const ProcessPiece> pieces) {
    Vectors vectors(pieces);
    const std::size_t wanted = vectors.bytes;
    std::uint64_t seen = 0;
    // One call reads one address space, even if the process changes meanwhile. The mark thus
    // identifies the process of all bytes before it.
    vectors.add({&seen, sizeof seen}, remote(mark.address, sizeof seen));
    const ssize_t moved = ::process_vm_readv(pid, vectors.here.data(), vectors.count,
                                             vectors.there.data(), vectors.count, 0);
    const int error = moved < 0 ? errno : 0;
    if (moved == static_cast<ssize_t>(vectors.bytes) && seen == mark.value) return Status::ok();
    return fault(error, concat("cannot read ", wanted, " bytes of process ", pid));
}

Status read_living_process(pid_t pid, std::span<const ProcessPiece> pieces) {
    const Vectors vectors(pieces);
    const ssize_t moved = ::process_vm_readv(pid, vectors.here.data(), vectors.count,
                                             vectors.there.data(), vectors.count, 0);
    if (moved == static_cast<ssize_t>(vectors.bytes)) return Status::ok();
    const int error = moved < 0 ? errno : 0;
    return fault(error, concat("cannot read ", vectors.bytes, " bytes of process ", pid));
}

Result<bool> write_living_process(pid_t pid, ProcessGate gate,
                                  std::span<const ProcessPiece> pieces) {
    std::uint64_t word = 0;
    Vectors vectors;
    vectors.add({&word, sizeof word}, remote(gate.address, sizeof word));
    vectors.add(pieces);
    const ssize_t moved = ::process_vm_writev(pid, vectors.here.data(), vectors.count,
                                              vectors.there.data(), vectors.count, 0);
    if (moved == static_cast<ssize_t>(vectors.bytes)) return true;
    const int error = moved < 0 ? errno : 0;
    // The kernel copies in order, and returns the count of copied bytes where a later piece fails.
    if (error == EFAULT) return false;
    return fault(error, concat("cannot write ", vectors.bytes, " bytes of process ", pid));
}

Result<bool> write_process_pieces(pid_t pid, const ProcessMark& mark, ProcessGate gate,
                                  std::span<const ProcessPiece> pieces) {
    PCCL_TRY(read_process_pieces(pid, mark, {}));
    PCCL_ASSIGN_OR_RETURN(const bool is_open, write_living_process(pid, gate, pieces));
    PCCL_TRY(read_process_pieces(pid, mark, {}));
    return is_open;
}

Status read_process_memory(pid_t pid, const ProcessMark& mark, std::uint64_t address,
                           std::span<std::byte> into) {
    return read_in_pieces(address, into, [&](std::span<const ProcessPiece> pieces) {
        return read_process_pieces(pid, mark, pieces);
    });
}

Status read_living_process(pid_t pid, std::uint64_t address, std::span<std::byte> into) {
    return read_in_pieces(address, into, [&](std::span<const ProcessPiece> pieces) {
        return read_living_process(pid, pieces);
    });
}

}  // namespace pccl::sys
