// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/poller.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pccl {

Poller::Poller(PollerOptions options)
    : options_(std::move(options)), thread_(options_.name, [this] { run(); }) {}

Poller::~Poller() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_one();
}

void Poller::watch(Watched watched) {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(watched));
    changed_.notify_one();
}

void Poller::run() {
    if (options_.prepare) options_.prepare();
    std::vector<Watched> open;
    for (bool is_last = false; !is_last;) {
        is_last = await_look(open);
        std::erase_if(open, [is_last](const Watched& each) {
            const bool is_notified = is_last || each.is_over();
            if (is_notified) each.notify();
            return is_notified;
        });
    }
}

bool Poller::await_look(std::vector<Watched>& open) {
    std::unique_lock lock(mutex_);
    if (open.empty()) {
        changed_.wait(lock, [this] { return is_closed_ || !added_.empty(); });
    } else {
        changed_.wait_for(lock, options_.interval, [this] { return is_closed_; });
    }
    std::ranges::move(added_, std::back_inserter(open));
    added_.clear();
    return is_closed_;
}

}  // namespace pccl
