// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/setup.h"

#include <utility>

namespace pccl::transport::netplugin {

Result<bool> Setup::is_done() {
    if (caller().slot->is_stuck()) return caller().plugin->stuck(*caller().slot);
    const std::lock_guard lock(mutex_);
    if (!result_) return false;
    PCCL_TRY(*result_);
    return true;
}

std::vector<Comm> Setup::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(comms_, {});
}

Activity Setup::poll() {
    if (is_over()) return Activity::kIdle;
    const std::size_t before = comms_.size();
    Status stepped = expect_and_step();
    const bool is_complete = comms_.size() == kChannels;
    if (!stepped.is_ok() || is_complete) {
        const std::lock_guard lock(mutex_);
        result_ = std::move(stepped);
    }
    const bool has_news = is_over();
    if (has_news) ring_();
    if (is_awaited()) return Activity::kIdle;
    return has_news || comms_.size() > before ? Activity::kMoved : Activity::kWaiting;
}

Status Setup::expect_and_step() {
    PCCL_TRY(caller().plugin->expect(*caller().slot,
                                     {.peers = place_.peers, .flows_per_peer = kChannels}));
    return step();
}

bool Setup::is_over() {
    if (is_awaited() && system_clock().now() >= abandoned_until_.load()) return true;
    const std::lock_guard lock(mutex_);
    return result_.has_value();
}

Status Setup::add(Comm comm, std::size_t memory_bytes) {
    PCCL_ASSIGN_OR_RETURN(auto memory, Mapping::anonymous(memory_bytes));
    PCCL_TRY(comm.attach(std::move(memory)));
    comms_.push_back(std::move(comm));
    return Status::ok();
}

Status ConnectSetup::step() {
    const Caller& by = caller();
    while (connected() < kChannels) {
        PCCL_ASSIGN_OR_RETURN(void* const comm,
                              by.plugin->connect(*by.slot, device(), handles_.at(connected())));
        if (comm == nullptr) break;
        PCCL_TRY(add(Comm(by, comm, &Plugin::close_send), memory_bytes_));
    }
    return Status::ok();
}

std::optional<LinkOffer> AcceptSetup::offer() {
    const std::lock_guard lock(mutex_);
    return is_listening_ ? std::optional(offer_) : std::nullopt;
}

Status AcceptSetup::step() {
    const Caller& by = caller();
    while (listeners_.size() < kChannels) {
        auto& handle = offer_.handles.at(listeners_.size());
        PCCL_ASSIGN_OR_RETURN(void* const comm, by.plugin->listen(*by.slot, device(), handle));
        listeners_.emplace_back(by, comm, &Plugin::close_listen);
    }
    if (!is_listening_) {
        {
            const std::lock_guard lock(mutex_);
            is_listening_ = true;
        }
        ring();
    }
    while (connected() < kChannels) {
        PCCL_ASSIGN_OR_RETURN(Comm comm, listeners_[connected()].accept(&Plugin::close_recv));
        if (!comm.is_open()) return Status::ok();
        PCCL_TRY(add(std::move(comm), sizes_.memory_bytes));
    }
    listeners_.clear();
    return Status::ok();
}

}  // namespace pccl::transport::netplugin
