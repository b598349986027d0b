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
    const bool is_complete = comms_.size() == count();
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

Status Setup::add(Comm comm, std::shared_ptr<Mapping> memory) {
    PCCL_TRY(comm.attach(std::move(memory)));
    comms_.push_back(std::move(comm));
    return Status::ok();
}

Status ConnectSetup::step() {
    const Caller& by = caller();
    while (connected().size() < count()) {
        const std::size_t index = connected().size();
        auto& handle = offer_.lanes[lane_of(index)].handles.at(channel_of(index));
        PCCL_ASSIGN_OR_RETURN(void* const made,
                              by.plugin->connect(*by.slot, device(index), handle));
        if (made == nullptr) break;
        Comm comm(by, made, &Plugin::close_send);
        PCCL_ASSIGN_OR_RETURN(auto memory, memory_for(index));
        PCCL_TRY(add(std::move(comm), std::move(memory)));
    }
    return Status::ok();
}

Result<std::shared_ptr<Mapping>> ConnectSetup::memory_for(std::size_t index) const {
    if (lane_of(index) > 0) return connected().back().mapping();  // a ring for each channel
    PCCL_ASSIGN_OR_RETURN(auto memory, Mapping::anonymous(memory_bytes_));
    return std::make_shared<Mapping>(std::move(memory));
}

AcceptSetup::AcceptSetup(SetupPlace place, std::function<void()> ring, const CommSizes& sizes)
    : Setup(std::move(place), std::move(ring)), sizes_(sizes) {
    offer_.message_bytes = static_cast<std::uint32_t>(sizes.message_bytes);
    for (const auto* device : devices()) offer_.lanes.push_back({.rail = device->rail});
}

std::optional<LinkOffer> AcceptSetup::offer() {
    const std::lock_guard lock(mutex_);
    return is_listening_ ? std::optional(offer_) : std::nullopt;
}

Status AcceptSetup::step() {
    const Caller& by = caller();
    while (listeners_.size() < count()) {
        const std::size_t index = listeners_.size();
        auto& handle = offer_.lanes[lane_of(index)].handles.at(channel_of(index));
        PCCL_ASSIGN_OR_RETURN(void* const comm, by.plugin->listen(*by.slot, device(index), handle));
        listeners_.emplace_back(by, comm, &Plugin::close_listen);
    }
    if (!is_listening_) {
        {
            const std::lock_guard lock(mutex_);
            is_listening_ = true;
        }
        ring();
    }
    while (connected().size() < count()) {
        PCCL_ASSIGN_OR_RETURN(Comm comm,
                              listeners_[connected().size()].accept(&Plugin::close_recv));
        if (!comm.is_open()) return Status::ok();
        PCCL_ASSIGN_OR_RETURN(auto memory, Mapping::anonymous(sizes_.memory_bytes));
        PCCL_TRY(add(std::move(comm), std::make_shared<Mapping>(std::move(memory))));
    }
    listeners_.clear();
    return Status::ok();
}

}  // namespace pccl::transport::netplugin
