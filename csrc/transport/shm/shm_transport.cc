#include "csrc/transport/shm/shm_transport.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/control/parcel.h"
#include "csrc/transport/control/unix_socket.h"
#include "csrc/transport/watched_socket.h"

namespace pccl::transport::shm {
namespace {

// "v1;<host>;unix:@<name>"
constexpr std::string_view kVersion = "v1;";
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr std::size_t kLeastSegment = 64 * kKiB;
constexpr std::byte kMemory{'M'};
constexpr std::byte kWelcome{'W'};

struct ParsedAddress {
    std::string host;
    sys::Address socket;
};

Result<ParsedAddress> parse_address(const std::string& text) {
    const std::size_t end = text.find(';', kVersion.size());
    if (text.compare(0, kVersion.size(), kVersion) != 0 || end == std::string::npos)
        return Status::invalid_argument(concat("\"", text, "\" is no address of shared memory"));
    PCCL_ASSIGN_OR_RETURN(const auto socket,
                          sys::Address::parse(std::string_view(text).substr(end + 1)));
    return ParsedAddress{text.substr(kVersion.size(), end - kVersion.size()), socket};
}

Introduction introduce(const LinkRequest& request, Service service, const Purpose& purpose = {}) {
    return {.request = request,
            .service = service,
            .transport = static_cast<std::uint8_t>(TransportKind::kShm),
            .purpose = purpose};
}

}  // namespace

std::size_t region_bytes(int ranks) {
    constexpr std::size_t kBudget = 16 * kMiB;
    constexpr std::size_t kMost = 2 * kMiB;
    const auto members = static_cast<std::size_t>(std::max(ranks, 1));
    return members * std::clamp(std::bit_floor(kBudget / members), kLeastSegment, kMost);
}

std::size_t least_region_bytes(int ranks) {
    return static_cast<std::size_t>(std::max(ranks, 1)) * kLeastSegment;
}

bool same_host(const std::string& a, const std::string& b) {
    const auto first = parse_address(a);
    const auto second = parse_address(b);
    return first.is_ok() && second.is_ok() && (*first).host == (*second).host;
}

Result<std::unique_ptr<ShmTransport>> ShmTransport::create(Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(std::string host, sys::host_identity());
    std::unique_ptr<ShmTransport> transport(new ShmTransport(waiter, std::move(host)));
    PCCL_ASSIGN_OR_RETURN(const sys::Address name, fresh_unix_address());
    PCCL_ASSIGN_OR_RETURN(transport->server_,
                          HandshakeServer::listen(name, {.way = to_string(TransportKind::kShm)}));
    return transport;
}

std::string ShmTransport::address() const {
    return concat(kVersion, host_, ";", server_->address().to_string());
}

Status ShmTransport::reaches(const std::string& address) const {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    if (peer.host == host_) return Status::ok();
    return Status::unavailable("the peer is on another host or in another network namespace");
}

Result<UniqueFd> ShmTransport::connect(const std::string& address, const Introduction& introduction,
                                       const Secret& secret, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    PCCL_ASSIGN_OR_RETURN(
        auto sockets,
        connect_authenticated({.address = peer.socket, .secret = secret, .stream = {}},
                              {&introduction, 1}, deadline));
    return std::move(sockets.front());
}

/// Proves the secret, hands over the memory, and takes the peer's doorbell.
class ShmTransport::ShmDial final : public Dial {
   public:
    ShmDial(Waiter& waiter, const LinkRequest& request, std::unique_ptr<HandshakeClient> client)
        : waiter_(waiter), request_(request), client_(std::move(client)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        if (!socket_) {
            PCCL_ASSIGN_OR_RETURN(const bool accepted, client_->advance());
            if (!accepted) return std::unique_ptr<SendLink>();
            PCCL_TRY(offer());
        }
        auto answer = next_parcel(socket_->fd(), kWelcome);
        if (!answer.is_ok()) return answer.status().with_peer(request_.destination);
        if (!*answer) return std::unique_ptr<SendLink>();
        return finish((*answer)->descriptors);
    }
    [[nodiscard]] Status late() const override {
        if (!socket_) return client_->late();
        return Status::timeout("timed out waiting for the peer's descriptors")
            .with_peer(request_.destination);
    }

   private:
    Status offer() {
        PCCL_ASSIGN_OR_RETURN(rings_, RingFile::create(ring_bytes(request_.group_size)));
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
        auto wire = std::make_unique<PeerWire>(Departure{.self = request_.source,
                                                         .leaver = request_.destination,
                                                         .ranks = request_.group_size},
                                               socket_->release(), std::move(doorbell));
        return std::unique_ptr<SendLink>(new ShmSendLink(std::move(rings_), std::move(wire)));
    }

    Waiter& waiter_;
    const LinkRequest request_;
    const std::unique_ptr<HandshakeClient> client_;
    std::unique_ptr<RingFile> rings_;
    std::optional<WatchedSocket> socket_;  // once the memory is offered
};

Result<std::unique_ptr<Dial>> ShmTransport::dial(const std::string& address,
                                                 const LinkRequest& request, const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    const Introduction introduction = introduce(request, Service::kLink);
    PCCL_ASSIGN_OR_RETURN(auto client, HandshakeClient::start(
                                           {.address = peer.socket, .secret = secret, .stream = {}},
                                           {&introduction, 1}, &waiter_));
    return std::unique_ptr<Dial>(std::make_unique<ShmDial>(waiter_, request, std::move(client)));
}

Result<std::unique_ptr<Region>> ShmTransport::share(const RegionRequest& request,
                                                    const Secret& secret, Deadline deadline) {
    const int ranks = static_cast<int>(request.addresses.size());
    PCCL_ASSIGN_OR_RETURN(auto memory,
                          stock_.claim(region_bytes(ranks), least_region_bytes(ranks)));
    const RegionExtent extent = memory->extent();
    auto region = Region::create(std::move(memory), ranks);
    const auto invite = [&](Rank rank) {
        if (request.waits_for) request.waits_for(rank);
        const LinkRequest link{
            .group = request.group, .source = 0, .destination = rank, .group_size = ranks};
        auto socket =
            connect(request.addresses[static_cast<std::size_t>(rank)],
                    introduce(link, Service::kRegion, purpose_of(extent)), secret, deadline);
        PCCL_TRY(socket.status().with_peer(rank));
        return region->offer(rank, std::move(*socket), waiter_.handles(), deadline);
    };
    Status shared;
    for (Rank rank = 1; rank < ranks && shared.is_ok(); ++rank) shared = invite(rank);
    if (shared.is_ok()) shared = region->complete(deadline);
    if (shared.is_ok()) return region;
    region->call_off(shared);
    return shared;
}

Result<std::string> ShmTransport::inquire(const std::string& address, const LinkRequest& request,
                                          const Secret& secret, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    return transport::inquire({.address = peer.socket, .secret = secret, .stream = {}},
                              introduce(request, Service::kQuery), deadline);
}

Status ShmTransport::tell(const std::string& address, const LinkRequest& request,
                          const Secret& secret, const Status& reason, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    const Introduction introduction =
        introduce(request, Service::kNotice, purpose_of(notice_of(reason)));
    return connect_authenticated({.address = peer.socket, .secret = secret, .stream = {}},
                                 {&introduction, 1}, deadline)
        .status();
}

Status ShmTransport::knock(const std::string& address, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    return transport::knock(peer.socket, deadline);
}

void ShmTransport::accept(Acceptor& acceptor) {
    server_->advance(acceptor, [&](UniqueFd socket, const Introduction& introduction) {
        if (introduction.service == Service::kQuery)
            return answer(socket.get(), acceptor.describe(introduction.request));
        if (introduction.service == Service::kNotice)
            return acceptor.noticed(introduction.request,
                                    reason_of(word_in<Notice>(introduction.purpose)));
        if (const Status watched = server_->watch(socket.get()); !watched.is_ok())
            return acceptor.refused(to_string(kind()), watched);
        arrivals_.push_back({std::move(socket), introduction, Deadline::after(kPatience)});
    });
    arrivals_.remove_if([&](Arrival& arrival) { return receive_memory(arrival, acceptor); });
}

bool ShmTransport::receive_memory(Arrival& arrival, Acceptor& acceptor) {
    const int socket = arrival.socket.get();
    const auto received = arrival.introduction.service == Service::kRegion
                              ? receive_region(arrival, acceptor)
                              : receive_link(arrival, acceptor);
    Status failure = received.status();
    if (received.is_ok() && !*received) {
        if (!arrival.deadline.passed()) return false;
        failure = Status::timeout("a proven peer sent no memory in time");
    }
    if (failure.code() == StatusCode::kResourceExhausted) {
        static_cast<void>(sys::send_descriptors(socket, kShortage, {}));
        acceptor.fell_short(arrival.introduction.request, kind(), failure);
    } else if (!failure.is_ok()) {
        acceptor.refused(to_string(kind()), failure);
    }
    if (arrival.socket.is_open()) server_->unwatch(socket);
    return true;
}

Result<bool> ShmTransport::receive_link(Arrival& arrival, Acceptor& acceptor) {
    PCCL_ASSIGN_OR_RETURN(auto parcel, sys::receive_descriptors(arrival.socket.get()));
    if (!parcel) return false;
    server_->unwatch(arrival.socket.get());
    PCCL_ASSIGN_OR_RETURN(auto link, make_receiver(arrival, parcel->descriptors));
    acceptor.accepted(arrival.introduction.request, std::move(link));
    return true;
}

Result<bool> ShmTransport::receive_region(Arrival& arrival, Acceptor& acceptor) {
    const LinkRequest& request = arrival.introduction.request;
    const int ranks = request.group_size;
    if (ranks < 2 || request.destination < 1 || request.destination >= ranks)
        return Status::invalid_argument("a region for a rank that is not in its group");
    const auto extent = word_in<RegionExtent>(arrival.introduction.purpose);
    if (extent.bytes < least_region_bytes(ranks) || extent.bytes > region_bytes(ranks))
        return Status::invalid_argument(
            concat("a region of ", extent.bytes, " bytes for ", ranks, " ranks"));
    const int socket = arrival.socket.get();
    PCCL_ASSIGN_OR_RETURN(
        auto region,
        Region::accept(arrival.socket, waiter_.handles(),
                       {.extent = extent, .rank = request.destination, .ranks = ranks}));
    if (region == nullptr) return false;
    server_->unwatch(socket);
    stock_.add(region->source());
    acceptor.accepted_region(request, std::move(region));
    return true;
}

Result<std::unique_ptr<RecvLink>> ShmTransport::make_receiver(Arrival& arrival,
                                                              std::span<UniqueFd> descriptors) {
    if (descriptors.empty()) return Status::invalid_argument("a proven peer sent no memory");
    const LinkRequest& request = arrival.introduction.request;
    PCCL_ASSIGN_OR_RETURN(
        auto rings, RingFile::map(std::move(descriptors.front()), ring_bytes(request.group_size)));
    PCCL_ASSIGN_OR_RETURN(auto doorbell, RemoteDoorbell::adopt(descriptors.subspan(1)));
    PCCL_ASSIGN_OR_RETURN(const bool sent,
                          sys::send_descriptors(arrival.socket.get(), kWelcome, waiter_.handles()));
    if (!sent) return Status::resource_exhausted("a fresh unix socket takes no descriptors");
    rings->memfd().reset();
    auto wire = std::make_unique<PeerWire>(
        Departure{
            .self = request.destination, .leaver = request.source, .ranks = request.group_size},
        std::move(arrival.socket), std::move(doorbell));
    return std::unique_ptr<RecvLink>(new ShmRecvLink(std::move(rings), std::move(wire)));
}

}  // namespace pccl::transport::shm
