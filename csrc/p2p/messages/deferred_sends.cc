// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/messages/deferred_sends.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csrc/p2p/connection/connection.h"

namespace pccl::p2p {

void DeferredSends::add(std::shared_ptr<Connection> to, ControlMessage message) {
    const std::lock_guard lock(mutex_);
    deferred_sends_.push_back({std::move(to), std::move(message)});
}

std::size_t DeferredSends::count_to(const Connection& peer) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        deferred_sends_, [&peer](const DeferredSend& each) { return each.to.get() == &peer; }));
}

bool DeferredSends::send() {
    const std::unique_lock sending(sending_, std::try_to_lock);
    if (!sending.owns_lock()) return false;
    std::vector<DeferredSend> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(deferred_sends_);
    }
    const std::size_t before = all.size();
    std::vector<const Connection*> full;
    std::erase_if(all, [&full](const DeferredSend& each) {
        // Messages to one peer stay in order; those to other peers do not wait for them.
        if (std::ranges::find(full, each.to.get()) != full.end()) return false;
        if (each.to->send_message(each.message).code() != StatusCode::kResourceExhausted)
            return true;
        full.push_back(each.to.get());
        return false;
    });
    const std::lock_guard lock(mutex_);
    const bool sent = all.size() < before;
    deferred_sends_.insert(deferred_sends_.begin(), std::make_move_iterator(all.begin()),
                           std::make_move_iterator(all.end()));
    return sent;
}

void DeferredSends::forget(const Connection& peer) {
    const std::lock_guard lock(mutex_);
    std::erase_if(deferred_sends_,
                  [&peer](const DeferredSend& each) { return each.to.get() == &peer; });
}

}  // namespace pccl::p2p
