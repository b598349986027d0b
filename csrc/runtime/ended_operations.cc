// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/ended_operations.h"

#include <utility>

#include "csrc/base/scope_exit.h"

namespace pccl::runtime {

void EndedOperations::tell(std::unique_lock<std::mutex> lock) {
    if (untold_.empty()) return;
    auto operations = std::exchange(untold_, {});
    callback_guard_.enter();
    const ScopeExit told([this] { callback_guard_.leave(); });
    lock.unlock();
    for (const auto& operation : operations) operation->notify();
    operations.clear();
}

}  // namespace pccl::runtime
