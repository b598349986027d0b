#include "csrc/sys/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "csrc/base/ids.h"
#include "csrc/base/text.h"

namespace pccl::sys {
namespace {

// The kernel moves no 2 GiB in one call.
constexpr std::size_t kMostAtOnce = 1024 * kMiB;

iovec remote(std::uint64_t address, std::size_t bytes) {
    return {reinterpret_cast<void*>(address), bytes};  // NOLINT: the other's address
}

/// One call reads one address space, whatever happens to the process meanwhile: so the mark speaks
/// for the bytes beside it.
Status read_at_once(pid_t pid, const ProcessMark& mark, std::uint64_t address,
                    std::span<std::byte> into) {
    std::uint64_t seen = 0;
    const std::array to{iovec{into.data(), into.size()}, iovec{&seen, sizeof seen}};
    const std::array from{remote(address, into.size()), remote(mark.address, sizeof seen)};
    const ssize_t copied =
        ::process_vm_readv(pid, to.data(), to.size(), from.data(), from.size(), 0);
    const int error = errno;
    if (copied == static_cast<ssize_t>(into.size() + sizeof seen) && seen == mark.value)
        return Status::ok();
    const std::string what = concat("cannot read ", into.size(), " bytes of process ", pid);
    if (copied < 0) return Status::unavailable(Status::from_errno(error, what).message());
    return Status::unavailable(concat(what, ": its memory is not what it was"));
}

}  // namespace

Status read_process_memory(pid_t pid, const ProcessMark& mark, std::uint64_t address,
                           std::span<std::byte> into) {
    for (; into.size() > kMostAtOnce; into = into.subspan(kMostAtOnce), address += kMostAtOnce)
        PCCL_TRY(read_at_once(pid, mark, address, into.first(kMostAtOnce)));
    return read_at_once(pid, mark, address, into);
}

}  // namespace pccl::sys
