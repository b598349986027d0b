// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/writable.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace pccl {
namespace {

constexpr std::uintptr_t kWord = 4;  // bytes, all in one page

/// Makes the kernel OR 0 into the word, which is atomic, and which fails like any other write.
/// FUTEX_WAKE_OP does so before it wakes the waiters of a word, of which there are none.
bool takes_writes(std::uintptr_t address) {
    std::uint32_t nobody = 0;
    const long woken =
        ::syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, nullptr,
                  address / kWord * kWord, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0));
    return woken >= 0 || errno != EFAULT;
}

}  // namespace

bool is_writable(std::span<const std::byte> memory) {
    if (memory.empty()) return true;
    constexpr std::uintptr_t kPage = 4096;
    const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::uintptr_t last = first + memory.size() - 1;
    return takes_writes(first) && (first / kPage == last / kPage || takes_writes(last));
}

}  // namespace pccl
