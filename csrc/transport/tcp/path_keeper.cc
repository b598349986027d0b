// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/path_keeper.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pccl::transport::tcp {
namespace {

// For a host that is cut off; others confirm within a round trip.
constexpr Duration kLinger = std::chrono::seconds(2);
constexpr Duration kCloseStep = std::chrono::milliseconds(5);
constexpr Duration kLongestSleep = std::chrono::hours(1);

}  // namespace

PathKeeper::~PathKeeper() {
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    news_.notify_all();
}

void PathKeeper::add(const std::shared_ptr<KeptLink>& link) {
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(links_, [](const auto& each) { return each.expired(); });
        links_.push_back(link);
        if (thread_ == nullptr)
            thread_ =
                std::make_unique<BackgroundThread>("pccl-paths", [this] { keep_until_stopped(); });
    }
    kicks_.fetch_add(1);
    wake();
}

void PathKeeper::wake() {
    const std::lock_guard lock(mutex_);
    news_.notify_all();
}

Duration PathKeeper::look_after_all() {
    std::vector<std::weak_ptr<KeptLink>> links;
    {
        const std::lock_guard lock(mutex_);
        links = links_;
    }
    Duration next = Duration::max();
    for (const auto& each : links)
        if (const auto link = each.lock())
            next = std::min(next, link->look_after(system_clock().now()));
    return next;
}

void PathKeeper::keep_until_closed(std::shared_ptr<KeptLink> link) {
    {
        const std::lock_guard lock(mutex_);
        closing_.push_back({std::move(link), Deadline::after(kLinger)});
    }
    kicks_.fetch_add(1);
    wake();
}

void PathKeeper::close_ended() {
    std::vector<ClosingLink> closing;
    {
        const std::lock_guard lock(mutex_);
        closing.swap(closing_);
    }
    std::erase_if(closing, [](const ClosingLink& each) {
        return each.link->close() || each.deadline.passed();
    });
    const std::lock_guard lock(mutex_);
    std::ranges::move(closing, std::back_inserter(closing_));
}

void PathKeeper::keep_until_stopped() {
    for (;;) {
        const unsigned seen = kicks_.load();
        Duration next = look_after_all();
        close_ended();
        std::unique_lock lock(mutex_);
        if (stops_ && closing_.empty()) return;
        if (!closing_.empty()) next = std::min(next, kCloseStep);
        if (next != Duration::max()) {
            news_.wait_for(lock, std::min(next, kLongestSleep));
            continue;
        }
        is_idle_.store(true);
        if (kicks_.load() == seen && !stops_) news_.wait_for(lock, kLongestSleep);
        is_idle_.store(false);
    }
}

}  // namespace pccl::transport::tcp
