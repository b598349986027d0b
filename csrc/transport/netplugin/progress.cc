// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/progress.h"

#include <algorithm>
#include <utility>

namespace pccl::transport::netplugin {
namespace {

constexpr Duration kShortest = std::chrono::microseconds(20);
constexpr Duration kLongestWaiting = std::chrono::microseconds(200);
constexpr Duration kLongestIdle = std::chrono::milliseconds(1);
constexpr Duration kMostAwaited = std::chrono::seconds(1);
constexpr Duration kMostJoin = std::chrono::seconds(2);

Duration next_interval(Duration interval, Activity activity) {
    if (activity == Activity::kMoved) return kShortest;
    const Duration longest = activity == Activity::kWaiting ? kLongestWaiting : kLongestIdle;
    return std::min(2 * interval, longest);
}

}  // namespace

Progress::Progress() : thread_("pccl-net", [state = state_] { state->run(); }) {}

Progress::~Progress() {
    std::unique_lock lock(state_->mutex);
    state_->is_closed = true;
    state_->last = Deadline::after(kMostAwaited);
    state_->changed.notify_all();
    if (!state_->changed.wait_for(lock, kMostJoin, [this] { return state_->has_ended; }))
        thread_.release();
}

void Progress::add(std::shared_ptr<Polled> polled) {
    const std::lock_guard lock(state_->mutex);
    state_->all.push_back(std::move(polled));
    state_->changed.notify_all();
}

void Progress::remove(const Polled& polled) { state_->drop(polled); }

void Progress::State::drop(const Polled& polled) {
    std::shared_ptr<Polled> dropped;  // its destructor may call the plug-in: without the lock
    const std::lock_guard lock(mutex);
    const auto found = std::ranges::find(all, &polled, &std::shared_ptr<Polled>::get);
    if (found == all.end()) return;
    dropped = std::move(*found);
    all.erase(found);
}

bool Progress::State::awaits_any() const {
    return std::ranges::any_of(all, [](const auto& each) { return each->is_awaited(); });
}

std::optional<std::vector<std::shared_ptr<Polled>>> Progress::State::next(Duration interval) {
    std::unique_lock lock(mutex);
    const std::size_t known = all.size();
    const auto has_news = [&] { return all.size() > known || is_closed; };
    if (all.empty())
        changed.wait(lock, has_news);
    else
        changed.wait_for(lock, interval, [&] { return all.size() > known; });
    if (is_closed && (last.passed() || !awaits_any())) return std::nullopt;
    return all;
}

void Progress::State::run() {
    Duration interval = kShortest;
    while (auto polled = next(interval)) {
        Activity most = Activity::kIdle;
        for (const auto& each : *polled) {
            most = std::max(most, each->poll());
            if (each->is_over()) drop(*each);
        }
        interval = next_interval(interval, most);
    }
    std::vector<std::shared_ptr<Polled>> left;
    {
        const std::lock_guard lock(mutex);
        left.swap(all);
    }
    left.clear();  // calls the plug-in, which may block
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
}

}  // namespace pccl::transport::netplugin
