// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/done_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/bindings/errors.h"

namespace pccl::bindings {

DoneQueue::DoneQueue() : fd_(::eventfd(0, EFD_CLOEXEC)) {
    if (!fd_.is_open())
        throw_status(Status(StatusCode::kResourceExhausted,
                            concat("no descriptor for callbacks: ", std::strerror(errno))));
}

void DoneQueue::put(std::uint64_t number) {
    {
        const std::lock_guard lock(mutex_);
        numbers_.push_back(number);
    }
    constexpr std::uint64_t kOne = 1;
    // The write blocks only at 2^64 - 2 pending numbers.
    static_cast<void>(::write(fd_.get(), &kOne, sizeof kOne));
}

std::vector<std::uint64_t> DoneQueue::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(numbers_, {});
}

}  // namespace pccl::bindings
