// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/shm_transport.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/unix_socket.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/shm/rma.h"

namespace pccl::transport::shm {
namespace {

constexpr Duration kArrivalTimeout = std::chrono::seconds(5);
constexpr std::size_t kLeastSegment = 64 * kKiB;
constexpr std::byte kMemory{'M'};
constexpr std::byte kWelcome{'W'};

Introduction introduce(const LinkRequest& request, Service service, const Purpose& purpose = {}) {
    return {.request = request,
            .service = service,
            .transport = static_cast<std::uint8_t>(TransportKind::kShm),
            .purpose = purpose};
}

Result<ConnectArgs> connect_args(const PeerAddress& peer, const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(const std::string door, peer.first_of(TransportKind::kShm));
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(door));
    return ConnectArgs{.address = address, .secret = secret, .stream = {}};
}

}  // namespace

Status check_shared_memory(const Waiter& waiter) {
    PCCL_TRY(RegionMemory::in_new_file(kLeastSegment).status());
    if (waiter.handles()[0] >= 0) return Status::ok();
    return Status::unavailable("this process can make no doorbell for others");
}

std::size_t data_bytes(int ranks) {
    constexpr std::size_t kBudget = 16 * kMiB;
    constexpr std::size_t kMost = 2 * kMiB;
    const auto members = static_cast<std::size_t>(std::max(ranks, 1));
    return std::clamp(std::bit_floor(kBudget / members), kLeastSegment, kMost);
}

std::size_t region_bytes(int ranks) {
    constexpr std::size_t kBeside = 16 * kKiB;
    return static_cast<std::size_t>(std::max(ranks, 1)) * (data_bytes(ranks) + kBeside);
}

std::size_t least_region_bytes(int ranks) {
    return static_cast<std::size_t>(std::max(ranks, 1)) * kLeastSegment;
}

Status ShmTransport::reaches(const PeerAddress& peer) const {
    return may_share_memory(here_.process, peer.control);
}

/// Connection attempt: proves the secret, passes the memory, and receives the peer's doorbell.
class ShmTransport::ShmPendingConnect final : public PendingConnect {
   public:
    ShmPendingConnect(Waiter& waiter, const LinkRequest& request,
                      std::unique_ptr<HandshakeClient> client)
        : waiter_(waiter), request_(request), client_(std::move(client)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        if (!socket_) {
            PCCL_ASSIGN_OR_RETURN(const bool accepted, client_->advance());
            if (!accepted) return std::unique_ptr<SendLink>();
            PCCL_TRY(offer());
        }
        auto answer = next_fds(socket_->fd(), kWelcome);
        if (!answer.is_ok()) return answer.status().with_peer(request_.destination);
        if (!*answer) return std::unique_ptr<SendLink>();
        return finish((*answer)->descriptors);
    }
    [[nodiscard]] Status timeout_error() const override {
        if (!socket_) return client_->timeout_error();
        return Status::timeout("timed out waiting for the peer's descriptors")
            .with_peer(request_.destination);
    }

   private:
    Status offer() {
        PCCL_ASSIGN_OR_RETURN(
            rings_, RingFile::create(ring_bytes(request_.host_ranks, request_.group_size)));
        WatchedSocket socket(std::move(client_->take_sockets().front()), waiter_);
        PCCL_TRY(require_same_user(socket.fd()));
        const DoorbellHandles own = waiter_.handles();
        const std::array<int, 4> memory{rings_->memfd().get(), own[0], own[1], own[2]};
        const auto sent = sys::send_descriptors(socket.fd(), kMemory, memory);
        if (!sent.is_ok()) return sent.status().with_peer(request_.destination);
        if (!*sent) return Status::resource_exhausted("a fresh unix socket takes no descriptors");
        PCCL_TRY(socket.watch());
        socket_.emplace(std::move(socket));
        return Status::ok();
    }
    Result<std::unique_ptr<SendLink>> finish(std::span<UniqueFd> handles) {
        PCCL_ASSIGN_OR_RETURN(auto doorbell, RemoteDoorbell::adopt(handles));
        rings_->memfd().reset();
        auto wire = std::make_unique<PeerWire>(CloseContext{.self = request_.source,
                                                            .leaver = request_.destination,
                                                            .ranks = request_.group_size},
                                               socket_->release(), std::move(doorbell));
        return std::unique_ptr<SendLink>(new ShmSendLink(std::move(rings_), std::move(wire)));
    }

    Waiter& waiter_;
    const LinkRequest request_;
    const std::unique_ptr<HandshakeClient> client_;
    std::unique_ptr<RingFile> rings_;
    std::optional<WatchedSocket> socket_;  // set once the memory is offered
};

Result<std::unique_ptr<PendingConnect>> ShmTransport::connect(const PeerAddress& peer,
                                                              const LinkRequest& request,
                                                              const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(const ConnectArgs args, connect_args(peer, secret));
    const Introduction introduction = introduce(request, Service::kLink);
    PCCL_ASSIGN_OR_RETURN(auto client, HandshakeClient::start(args, {&introduction, 1}, &waiter_));
    return std::unique_ptr<PendingConnect>(
        std::make_unique<ShmPendingConnect>(waiter_, request, std::move(client)));
}

Result<std::unique_ptr<Region>> ShmTransport::share(const RegionRequest& request,
                                                    const Secret& secret, Deadline deadline) {
    const int ranks = static_cast<int>(request.ranks.size());
    PCCL_ASSIGN_OR_RETURN(auto memory,
                          stock_.claim(region_bytes(ranks), least_region_bytes(ranks)));
    const RegionExtent extent = memory->extent();
    auto region = Region::create(std::move(memory), ranks);
    const auto invite = [&](Rank rank) {
        if (request.waits_for) request.waits_for(rank);
        const Introduction introduction = introduce(
            {.group = request.group, .source = 0, .destination = rank, .group_size = ranks},
            Service::kRegion, purpose_of(extent));
        const auto args = connect_args(request.ranks[static_cast<std::size_t>(rank)], secret);
        PCCL_TRY(args.status().with_peer(rank));
        auto sockets = connect_authenticated(*args, {&introduction, 1}, deadline);
        if (!sockets.is_ok() && request.unreached)
            return request.unreached(sockets.status().with_peer(rank));
        PCCL_TRY(sockets.status().with_peer(rank));
        return region->offer(rank, std::move(sockets->front()), waiter_.handles(), deadline);
    };
    Status shared;
    for (Rank rank = 1; rank < ranks && shared.is_ok(); ++rank) shared = invite(rank);
    if (shared.is_ok()) shared = region->complete(deadline);
    if (shared.is_ok()) return region;
    region->call_off(shared);
    return shared;
}

Result<std::shared_ptr<RmaTransport>> ShmTransport::one_sided() {
    const std::lock_guard lock(mutex_);
    if (one_sided_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(one_sided_, ShmRma::create());
    }
    return std::shared_ptr<RmaTransport>(one_sided_);
}

void ShmTransport::accept(Arrival arrival, LinkReceiver& receiver) {
    if (const Status watched = receiver.watch(arrival.socket.get()); !watched.is_ok())
        return receiver.refused(to_string(kind()), watched);
    expected_.push_back({std::move(arrival), Deadline::after(kArrivalTimeout)});
}

void ShmTransport::advance(LinkReceiver& receiver) {
    expected_.remove_if([&](ExpectedLink& expected) { return receive_memory(expected, receiver); });
}

bool ShmTransport::receive_memory(ExpectedLink& expected, LinkReceiver& receiver) {
    const int socket = expected.from.socket.get();
    const auto received = expected.from.introduction.service == Service::kRegion
                              ? receive_region(expected, receiver)
                              : receive_link(expected, receiver);
    Status failure = received.status();
    if (received.is_ok() && !*received) {
        if (!expected.deadline.passed()) return false;
        failure = Status::timeout("a proven peer sent no memory in time");
    }
    if (failure.code() == StatusCode::kResourceExhausted) {
        static_cast<void>(sys::send_descriptors(socket, kShortage, {}));
        receiver.fell_short(expected.request(), kind(), failure);
    } else if (!failure.is_ok()) {
        receiver.refused(to_string(kind()), failure);
    }
    if (expected.from.socket.is_open()) receiver.unwatch(socket);
    return true;
}

Result<bool> ShmTransport::receive_link(ExpectedLink& expected, LinkReceiver& receiver) {
    PCCL_ASSIGN_OR_RETURN(auto fd_message, sys::receive_descriptors(expected.from.socket.get()));
    if (!fd_message) return false;
    receiver.unwatch(expected.from.socket.get());
    PCCL_ASSIGN_OR_RETURN(auto link, make_receiver(expected, fd_message->descriptors));
    receiver.accepted(expected.request(), std::move(link));
    return true;
}

Result<bool> ShmTransport::receive_region(ExpectedLink& expected, LinkReceiver& receiver) {
    const LinkRequest& request = expected.request();
    const int ranks = request.group_size;
    if (ranks < 2 || request.destination < 1 || request.destination >= ranks)
        return Status::invalid_argument("a region for a rank that is not in its group");
    const auto extent = value_in<RegionExtent>(expected.from.introduction.purpose);
    if (extent.bytes < least_region_bytes(ranks) || extent.bytes > region_bytes(ranks))
        return Status::invalid_argument(
            concat("a region of ", extent.bytes, " bytes for ", ranks, " ranks"));
    const int socket = expected.from.socket.get();
    PCCL_ASSIGN_OR_RETURN(
        auto region,
        Region::accept(expected.from.socket, waiter_.handles(),
                       {.extent = extent, .rank = request.destination, .ranks = ranks}));
    if (region == nullptr) return false;
    receiver.unwatch(socket);
    stock_.add(region->source());
    receiver.accepted_region(request, std::move(region));
    return true;
}

Result<std::unique_ptr<RecvLink>> ShmTransport::make_receiver(ExpectedLink& expected,
                                                              std::span<UniqueFd> descriptors) {
    if (descriptors.empty()) return Status::invalid_argument("a proven peer sent no memory");
    const LinkRequest& request = expected.request();
    PCCL_ASSIGN_OR_RETURN(auto rings, RingFile::map(std::move(descriptors.front())));
    PCCL_ASSIGN_OR_RETURN(auto doorbell, RemoteDoorbell::adopt(descriptors.subspan(1)));
    PCCL_ASSIGN_OR_RETURN(const bool sent, sys::send_descriptors(expected.from.socket.get(),
                                                                 kWelcome, waiter_.handles()));
    if (!sent) return Status::resource_exhausted("a fresh unix socket takes no descriptors");
    rings->memfd().reset();
    auto wire = std::make_unique<PeerWire>(
        CloseContext{
            .self = request.destination, .leaver = request.source, .ranks = request.group_size},
        std::move(expected.from.socket), std::move(doorbell));
    return std::unique_ptr<RecvLink>(new ShmRecvLink(std::move(rings), std::move(wire)));
}

}  // namespace pccl::transport::shm
