// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/liveness_futex.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace pccl::sys {

LivenessFutex::LivenessFutex(LivenessWord& word) : word_(word) {
    if (::syscall(SYS_get_robust_list, 0, &former_, &former_bytes_) != 0) return;
    list_ = {.list = {&held_},
             .futex_offset = reinterpret_cast<char*>(&word) - reinterpret_cast<char*>(&held_),
             .list_op_pending = nullptr};
    held_.next = &list_.list;
    if (::syscall(SYS_set_robust_list, &list_, sizeof list_) != 0) return;
    word_.store(static_cast<std::uint32_t>(::syscall(SYS_gettid)), std::memory_order_seq_cst);
}

LivenessFutex::~LivenessFutex() {
    word_.store(0, std::memory_order_seq_cst);
    if (former_ != nullptr) ::syscall(SYS_set_robust_list, former_, former_bytes_);
}

}  // namespace pccl::sys
