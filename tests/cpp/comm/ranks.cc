#include "tests/cpp/comm/ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "csrc/comm/runtime.h"

namespace pccl::comm {

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

void run_ranks(const RanksOptions& options, const std::function<void(Communicator&)>& body) {
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < options.size; ++rank) {
        threads.emplace_back([&, rank] {
            auto runtime = Runtime::create(options.transports);
            ASSERT_TRUE(runtime.is_ok()) << runtime.status().to_string();
            auto comm = Communicator::create({.rank = rank,
                                              .size = options.size,
                                              .store = store,
                                              .timeout = options.timeout,
                                              .runtime = *runtime});
            ASSERT_TRUE(comm.is_ok()) << comm.status().to_string();
            body(**comm);
            // Leaving early must not cut off a peer that still reads.
            static_cast<void>((*comm)->barrier());
        });
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace pccl::comm
