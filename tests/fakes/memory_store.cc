// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/memory_store.h"

#include <algorithm>
#include <chrono>

namespace pccl::fakes {

Status MemoryStore::set(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
    return Status::ok();
}

Result<std::string> MemoryStore::get(const std::string& key, Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto longest = std::min<Duration>(deadline.remaining(), std::chrono::hours(1));
    if (!changed_.wait_for(lock, longest, [&] { return values_.contains(key); }))
        return Status::timeout("no key " + key);
    return values_[key];
}

Result<std::int64_t> MemoryStore::add(const std::string& key, std::int64_t delta) {
    const std::lock_guard lock(mutex_);
    auto& value = values_[key];
    const std::int64_t sum = (value.empty() ? 0 : std::stoll(value)) + delta;
    value = std::to_string(sum);
    changed_.notify_all();
    return sum;
}

Status MemoryStore::remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
    return Status::ok();
}

}  // namespace pccl::fakes
