// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/region.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {
namespace {

constexpr std::byte kOffer{'R'};
constexpr std::byte kAnswer{'A'};
constexpr std::byte kDoorbells{'D'};
constexpr std::byte kCalledOff{'X'};  // a close reason follows
constexpr std::size_t kHandles = std::tuple_size_v<DoorbellHandles>;
constexpr std::size_t kDoorbellsInMessage = sys::kMostDescriptors / kHandles;

}  // namespace

std::unique_ptr<Region> Region::create(std::shared_ptr<RegionMemory> memory, int ranks) {
    std::unique_ptr<Region> region(new Region(std::move(memory), 0, ranks));
    region->guests_.resize(static_cast<std::size_t>(ranks));
    return region;
}

Status Region::offer(Rank rank, UniqueFd socket, const DoorbellHandles& own, Deadline deadline) {
    const std::array<int, 1 + kHandles> offered{memory_->file(), own[0], own[1], own[2]};
    const Status sent = send_fds(socket.get(), kOffer, offered, deadline);
    PCCL_TRY(sent.with_peer(rank));
    auto handles = receive_fds(socket.get(), kAnswer, deadline);
    PCCL_TRY(handles.status().with_peer(rank));
    guests_[static_cast<std::size_t>(rank)] = {std::move(socket), std::move(*handles)};
    return Status::ok();
}

Status Region::complete(Deadline deadline) {
    for (std::size_t rank = 1; rank < guests_.size(); ++rank)
        PCCL_TRY(
            send_doorbells(static_cast<Rank>(rank), deadline).with_peer(static_cast<Rank>(rank)));
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
        PCCL_ASSIGN_OR_RETURN(doorbells_[rank], RemoteDoorbell::adopt(guests_[rank].handles));
        // No thread of that rank watches the socket: without a ring a sleeper would see the
        // doorbells up to a slice late.
        doorbells_[rank]->ring();
    }
    guests_.clear();
    return Status::ok();
}

void Region::call_off(const Status& reason) {
    for (const Guest& guest : guests_) {
        if (!guest.socket.is_open()) continue;
        static_cast<void>(sys::send_descriptors(guest.socket.get(), kCalledOff, {}));
        send_close_reason(guest.socket.get(), reason);
    }
}

Status Region::send_doorbells(Rank to, Deadline deadline) {
    const auto receiver = static_cast<std::size_t>(to);
    std::vector<int> handles;
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
        if (rank == receiver) continue;
        for (const UniqueFd& handle : guests_[rank].handles) handles.push_back(handle.get());
    }
    for (std::size_t sent = 0; sent < handles.size();) {
        const std::size_t count = std::min(handles.size() - sent, kDoorbellsInMessage * kHandles);
        PCCL_TRY(send_fds(guests_[receiver].socket.get(), kDoorbells,
                          std::span(handles).subspan(sent, count), deadline));
        sent += count;
    }
    return Status::ok();
}

Result<std::unique_ptr<Region>> Region::accept(UniqueFd& socket, const DoorbellHandles& own,
                                               const Expected& expected) {
    PCCL_ASSIGN_OR_RETURN(auto fd_message, sys::receive_descriptors(socket.get()));
    if (!fd_message) return std::unique_ptr<Region>();
    if (fd_message->tag != kOffer || fd_message->descriptors.size() != 1 + kHandles)
        return Status::invalid_argument("a proven peer offered no region");
    PCCL_ASSIGN_OR_RETURN(
        auto memory, RegionMemory::join(std::move(fd_message->descriptors[0]), expected.extent));
    std::unique_ptr<Region> region(new Region(std::move(memory), expected.rank, expected.ranks));
    PCCL_ASSIGN_OR_RETURN(region->doorbells_[0],
                          RemoteDoorbell::adopt(std::span(fd_message->descriptors).subspan(1)));
    PCCL_ASSIGN_OR_RETURN(const bool sent, sys::send_descriptors(socket.get(), kAnswer, own));
    if (!sent) return Status::resource_exhausted("a fresh unix socket takes no descriptors");
    region->socket_ = std::move(socket);
    return region;
}

std::size_t Region::first_missing() const {
    std::size_t rank = 0;
    while (rank < doorbells_.size() &&
           (doorbells_[rank] != nullptr || static_cast<Rank>(rank) == self_))
        ++rank;
    return rank;
}

Result<bool> Region::is_complete() {
    if (!socket_.is_open()) return true;
    if (close_reason_) {
        PCCL_TRY(close_reason_->receive(socket_.get()));
        return false;
    }
    while (first_missing() < doorbells_.size()) {
        auto fd_message = sys::receive_descriptors(socket_.get());
        if (fd_message.status().code() == StatusCode::kResourceExhausted)
            return fd_message.status();
        if (!fd_message.is_ok())
            return Status::peer_lost(0, "rank 0 left before it had shared its memory");
        if (!*fd_message) return false;
        if ((*fd_message)->tag == kCalledOff) {
            close_reason_.emplace(CloseContext{
                .self = self_, .leaver = 0, .ranks = static_cast<int>(doorbells_.size())});
            return is_complete();
        }
        PCCL_TRY(adopt_doorbells((*fd_message)->descriptors));
    }
    socket_.reset();
    return true;
}

Status Region::adopt_doorbells(std::span<UniqueFd> handles) {
    if (handles.empty() || handles.size() % kHandles != 0)
        return Status::peer_lost(0, concat("rank 0 sent ", handles.size(), " descriptors"));
    for (; !handles.empty(); handles = handles.subspan(kHandles)) {
        const std::size_t rank = first_missing();
        if (rank == doorbells_.size())
            return Status::peer_lost(0, "rank 0 sent too many doorbells");
        PCCL_ASSIGN_OR_RETURN(doorbells_[rank], RemoteDoorbell::adopt(handles.first(kHandles)));
    }
    return Status::ok();
}

Status Region::look(Rank peer) const {
    const auto& doorbell = doorbells_[static_cast<std::size_t>(peer)];
    if (doorbell == nullptr || !doorbell->owner_has_exited()) return Status::ok();
    return Status::peer_lost(peer, concat("the process of rank ", peer, " has ended"));
}

}  // namespace pccl::transport
