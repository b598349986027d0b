// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/sticky_status.h"

namespace pccl::transport {

Status StickyStatus::get() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

Status StickyStatus::set(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (status_.is_ok()) status_ = status;
    set_.store(true, std::memory_order_release);
    return status_;
}

}  // namespace pccl::transport
