#include "csrc/sys/process_memory.h"

#include <sys/uio.h>

#include <cerrno>

#include "csrc/base/text.h"

namespace pccl::sys {

Status read_process_memory(pid_t pid, std::uint64_t address, std::byte* into, std::size_t bytes) {
    while (bytes > 0) {
        const iovec to{into, bytes};
        const iovec from{reinterpret_cast<void*>(address), bytes};  // NOLINT: the other's address
        const ssize_t copied = ::process_vm_readv(pid, &to, 1, &from, 1, 0);
        if (copied <= 0) {
            const Status why = Status::from_errno(errno, "");
            return Status::unavailable(
                concat("cannot read ", bytes, " bytes of process ", pid, why.message()));
        }
        into += copied;
        address += static_cast<std::uint64_t>(copied);
        bytes -= static_cast<std::size_t>(copied);
    }
    return Status::ok();
}

}  // namespace pccl::sys
