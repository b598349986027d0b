// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/verbs_transport.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/make_connector.h"
#include "csrc/transport/verbs/port_choice.h"
#include "csrc/transport/verbs/recv_link.h"
#include "csrc/transport/verbs/send_link.h"
#include "csrc/transport/verbs/verbs_rma.h"

namespace pccl::transport::verbs {
namespace {

constexpr Duration kArrivalTimeout = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kHelpInterval(20);
constexpr const char* kLayer = "layer:";
// Receive requests of each queue pair, at both ends. A receiver's credits take at most 40: 4 for
// each stream, and 2 for each lane.
constexpr std::uint32_t kReceives = 64;
constexpr QueueDepths kDepths{.sends = 128, .receives = kReceives + kSpareReceives};

std::string name_of(Rank rank, int socket) {
    const auto address = sys::peer_address(socket);
    return concat(peer_name(rank), " at ",
                  address.is_ok() ? address->to_string() : "an address that is gone");
}

Status send_message(int socket, const Result<LinkEnd>& end) {
    const std::string message = message_of(end);
    // A fresh socket takes some KiB at once.
    return sys::send_all(socket, std::as_bytes(std::span(message)),
                         Deadline::after(std::chrono::seconds(1)));
}

Result<std::array<LinkMemory, kChannels>> make_rings(const Lanes& lanes, std::uint32_t bytes,
                                                     Access access) {
    std::array<LinkMemory, kChannels> rings;
    for (LinkMemory& ring : rings) {
        PCCL_ASSIGN_OR_RETURN(auto mapping, Mapping::ring(bytes));
        PCCL_ASSIGN_OR_RETURN(ring,
                              LinkMemory::create(std::move(mapping), lanes.adapters(), access));
    }
    return rings;
}

Result<LinkMemory> make_memory(const Lanes& lanes, std::size_t bytes, Access access) {
    PCCL_ASSIGN_OR_RETURN(auto mapping, Mapping::anonymous(bytes));
    return LinkMemory::create(std::move(mapping), lanes.adapters(), access);
}

Result<Lanes> make_lanes(std::span<const std::shared_ptr<Port>> ports, int each) {
    PCCL_ASSIGN_OR_RETURN(Lanes lanes, Lanes::create(ports, each, kDepths));
    for (std::size_t i = 0; i < lanes.count(); ++i)
        PCCL_TRY(lanes[i].pair().post_receives(kDepths.receives));
    return lanes;
}

/// Checks that the ranges of a sender's end are those that this version uses.
Status check_sender(const LinkEnd& end) {
    if (end.memory.size() == 1 && end.memory.front().bytes >= kPageBytes) return Status::ok();
    return Status::invalid_argument("the sender of an RDMA link describes no credit page");
}

Status check_receiver(const LinkEnd& end, std::uint32_t wanted) {
    const bool has_all = end.memory.size() == kChannels + 1 && end.ring_bytes <= wanted &&
                         end.memory[0].bytes >= 2 * std::uint64_t{end.ring_bytes} &&
                         end.memory[1].bytes >= 2 * std::uint64_t{end.ring_bytes} &&
                         end.memory[2].bytes >= bytes_of_slots(end.lanes.size());
    if (has_all) return Status::ok();
    return Status::invalid_argument("the receiver of an RDMA link describes no rings");
}

}  // namespace

std::uint32_t ring_bytes(int group_size) {
    constexpr std::size_t kBudget = 32 * kMiB;  // of the rings of one channel, of all peers
    // Schedules rely on 257 KiB under way (costs/model/link_model.h).
    constexpr std::size_t kLeast = 512 * kKiB;
    static_assert(capacity_of(kLeast) >= 257 * kKiB);
    const std::size_t peers = static_cast<std::size_t>(std::max(group_size - 1, 1));
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>(std::bit_floor(kBudget / peers), kLeast, kMiB));
}

/// This end of a link, once it is described to the sender.
struct VerbsTransport::IncomingLink {
    void end_connecting(LinkReceiver& receiver) {
        if (connector != nullptr && connector->event_fd() >= 0)
            receiver.unwatch(connector->event_fd());
        connector.reset();
    }

    Lanes lanes;
    std::array<LinkMemory, kChannels> rings;
    LinkMemory slots;
    LinkMemory credits;
    LinkEnd here;
    PeerRange sender;
    std::unique_ptr<Connector> connector;
};

Result<std::unique_ptr<VerbsTransport>> VerbsTransport::create(Waiter& waiter, NetworkSide here,
                                                               const VerbsOptions& options) {
    std::unique_ptr<VerbsTransport> made(new VerbsTransport(waiter, std::move(here), options));
    std::vector<sys::Interface> interfaces;
    for (const NetworkDoor& door : made->here_.doors) interfaces.push_back(door.interface);
    std::vector<sys::Interface> networks = options.networks;
    if (networks.empty()) {
        PCCL_ASSIGN_OR_RETURN(networks, sys::list_interfaces());
    }
    PCCL_ASSIGN_OR_RETURN(HcaFilter filter, HcaFilter::parse(options.hca));
    PCCL_ASSIGN_OR_RETURN(made->ports_, choose_ports({.filter = std::move(filter),
                                                      .soft = options.soft,
                                                      .gid_index = options.gid_index,
                                                      .interfaces = interfaces,
                                                      .networks = networks},
                                                     waiter));
    if (made->ports_.size() * static_cast<std::size_t>(options.queue_pairs) > 1)
        made->helper_ = {new Poller({.name = "pccl-rdma", .interval = kHelpInterval}),
                         LeaveToParent()};
    for (const auto& port : made->ports_)
        log(LogLevel::kInfo, "RDMA port ", port->name(), ": ", port->info.gigabits, " Gbit/s, MTU ",
            port->info.mtu_bytes, ", GID ", port->gid.index, " ", port->gid.address(), " (",
            port->reason, ")");
    return made;
}

std::string VerbsTransport::link_layer() const {
    const Port& port = *ports_.front();
    return concat(kLayer, port.is_iwarp()         ? "iwarp"
                          : port.info.is_ethernet ? "ethernet"
                                                  : "infiniband");
}

std::vector<std::string> VerbsTransport::addresses() const {
    std::vector<std::string> addresses = here_.addresses();
    addresses.push_back(link_layer());
    return addresses;
}

Result<PeerRoutes> VerbsTransport::routes_to(const PeerAddress& peer) const {
    PCCL_TRY(peer.first_of(TransportKind::kVerbs).status());
    std::vector<std::string> doors = peer.links.at(TransportKind::kVerbs);
    std::erase_if(doors, [](const std::string& text) { return text.starts_with(kLayer); });
    return here_.routes_to(peer.control, doors);
}

Status VerbsTransport::reaches(const PeerAddress& peer) const {
    PCCL_TRY(routes_to(peer).status());
    const std::vector<std::string>& theirs = peer.links.at(TransportKind::kVerbs);
    const auto layer = std::ranges::find_if(
        theirs, [](const std::string& text) { return text.starts_with(kLayer); });
    if (layer == theirs.end() || *layer == link_layer()) return Status::ok();
    return Status::unavailable(concat("the RDMA ports here have the ", link_layer(),
                                      ", the peer's ", *layer,
                                      "; choose ports of one network by PCCL_IB_HCA"));
}

/// Connection attempt: proves the secret, describes this end, and connects to the receiver's.
class VerbsTransport::VerbsPendingConnect final : public PendingConnect {
   public:
    VerbsPendingConnect(const VerbsTransport& transport, const LinkRequest& request,
                        std::unique_ptr<RoutedHandshake> handshake)
        : transport_(transport), request_(request), handshake_(std::move(handshake)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        if (!socket_) {
            PCCL_ASSIGN_OR_RETURN(const bool accepted, handshake_->advance());
            if (!accepted) return std::unique_ptr<SendLink>();
            PCCL_TRY(offer());
        }
        if (connector_ == nullptr) {
            auto answer = reader_.advance(socket_->fd());
            if (!answer.is_ok()) return answer.status().with_peer(request_.destination);
            if (!*answer) return std::unique_ptr<SendLink>();
            PCCL_TRY(start(**std::move(answer)).with_peer(request_.destination));
        }
        const auto connected = connector_->advance();
        if (!connected.is_ok()) return connected.status().with_peer(request_.destination);
        if (!*connected) return std::unique_ptr<SendLink>();
        return finish();
    }
    [[nodiscard]] Status timeout_error() const override {
        if (!socket_) return handshake_->timeout_error();
        return Status::timeout(connector_ == nullptr
                                   ? "timed out waiting for the peer's queue pairs"
                                   : "timed out connecting to the peer's queue pairs")
            .with_peer(request_.destination);
    }

   private:
    Status offer() {
        UniqueFd socket = std::move(handshake_->take_sockets().front());
        sys::give_up_after(socket.get(), transport_.options_.peer_timeout);
        socket_.emplace(std::move(socket), transport_.waiter_);
        PCCL_TRY(socket_->watch());
        PCCL_ASSIGN_OR_RETURN(Lanes lanes,
                              make_lanes(transport_.ports_, transport_.options_.queue_pairs));
        lanes_ = std::move(lanes);
        PCCL_ASSIGN_OR_RETURN(credits_, make_memory(*lanes_, kPageBytes, Access::kPeerWrite));
        const Status sent =
            send_message(socket_->fd(), LinkEnd{.ring_bytes = ring_bytes(request_.group_size),
                                                .receives = kReceives,
                                                .way = transport_.way(),
                                                .memory = {credits_.range()},
                                                .lanes = lanes_->ends()});
        return sent.with_peer(request_.destination);
    }
    /// Begins to connect to the receiver's queue pairs.
    Status start(LinkEnd receiver) {
        PCCL_TRY(check_receiver(receiver, ring_bytes(request_.group_size)));
        PCCL_ASSIGN_OR_RETURN(const ConnectWay way, agree(transport_.way(), receiver.way));
        receiver_ = std::move(receiver);
        PCCL_TRY(lanes_->take_partners(receiver_.lanes));
        connector_ = std::make_unique<WatchedConnector>(
            make_connector(way, Connector::Role::kInitiator), transport_.waiter_);
        return connector_->start(lanes_->pairs(), receiver_.lanes);
    }
    Result<std::unique_ptr<SendLink>> finish() {
        connector_.reset();
        PCCL_ASSIGN_OR_RETURN(auto staging,
                              make_rings(*lanes_, receiver_.ring_bytes, Access::kLocal));
        const std::string name = name_of(request_.destination, socket_->fd());
        log(LogLevel::kInfo, "RDMA link to ", name, ": ", lanes_->describe(receiver_.lanes));
        PeerWatch watch(
            {.self = request_.source, .leaver = request_.destination, .ranks = request_.group_size},
            *std::exchange(socket_, std::nullopt));
        return std::unique_ptr<SendLink>(
            std::make_unique<VerbsSendLink>(SendLinkParts{.peer = request_.destination,
                                                          .peer_name = name,
                                                          .lanes = *std::move(lanes_),
                                                          .credits = std::move(credits_),
                                                          .staging = std::move(staging),
                                                          .receiver = std::move(receiver_),
                                                          .watch = std::move(watch),
                                                          .helper = transport_.helper_}));
    }

    const VerbsTransport& transport_;
    const LinkRequest request_;
    const std::unique_ptr<RoutedHandshake> handshake_;
    std::optional<WatchedSocket> socket_;  // set once the peer has accepted
    std::optional<Lanes> lanes_;
    LinkMemory credits_;
    LinkEndReader reader_;
    LinkEnd receiver_;                             // set with the connector
    std::unique_ptr<WatchedConnector> connector_;  // set once the receiver has answered
};

VerbsTransport::VerbsTransport(Waiter& waiter, NetworkSide here, const VerbsOptions& options)
    : waiter_(waiter), here_(std::move(here)), options_(options) {}
VerbsTransport::~VerbsTransport() = default;

ConnectWay VerbsTransport::way() const {
    return ports_.front()->is_iwarp() ? ConnectWay::kRdmaCm : options_.way;
}

Result<std::unique_ptr<PendingConnect>> VerbsTransport::connect(const PeerAddress& peer,
                                                                const LinkRequest& request,
                                                                const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(PeerRoutes routes, routes_to(peer));
    PCCL_ASSIGN_OR_RETURN(
        auto handshake,
        RoutedHandshake::start(
            {.host = peer.control.host,
             .routes = std::move(routes),
             .request = request,
             .secret = secret,
             .stream = options_.stream,
             .introductions = {{.request = request,
                                .service = Service::kLink,
                                .transport = static_cast<std::uint8_t>(TransportKind::kVerbs)}}},
            here_.proven, waiter_));
    return std::unique_ptr<PendingConnect>(
        std::make_unique<VerbsPendingConnect>(*this, request, std::move(handshake)));
}

Result<std::shared_ptr<RmaTransport>> VerbsTransport::one_sided() {
    const std::lock_guard lock(mutex_);
    if (one_sided_ == nullptr)
        one_sided_ = std::make_shared<VerbsRma>(ports_, options_.queue_pairs, options_.gpu_ways);
    return one_sided_;
}

void VerbsTransport::accept(Arrival arrival, LinkReceiver& receiver) {
    if (!arrival.shortage.is_ok()) {
        receiver.fell_short(arrival.introduction.request, kind(), arrival.shortage);
        static_cast<void>(send_message(arrival.socket.get(), arrival.shortage));
        return;
    }
    if (const Status watched = receiver.watch(arrival.socket.get()); !watched.is_ok())
        return receiver.refused(to_string(kind()), watched);
    expected_.push_back({std::move(arrival), Deadline::after(kArrivalTimeout)});
}

void VerbsTransport::advance(LinkReceiver& receiver) {
    expected_.remove_if([&](Expected& expected) { return receive_end(expected, receiver); });
}

bool VerbsTransport::receive_end(Expected& expected, LinkReceiver& receiver) {
    const int socket = expected.from.socket.get();
    const auto received = receive_link(expected, receiver);
    if (received.is_ok() && *received) return true;
    Status failure = received.status();
    if (failure.is_ok()) {
        if (!expected.deadline.passed()) return false;
        failure = Status::timeout(
            concat(peer_name(expected.request().source), " described no RDMA link in time"));
    }
    if (expected.link != nullptr) expected.link->end_connecting(receiver);
    if (expected.from.socket.is_open()) {
        static_cast<void>(send_message(socket, failure));
        receiver.unwatch(socket);
    }
    if (failure.code() == StatusCode::kResourceExhausted)
        receiver.fell_short(expected.request(), kind(), failure);
    else
        receiver.refused(to_string(kind()), failure);
    return true;
}

Result<bool> VerbsTransport::receive_link(Expected& expected, LinkReceiver& receiver) {
    if (expected.link == nullptr) {
        PCCL_ASSIGN_OR_RETURN(auto sender, expected.reader.advance(expected.from.socket.get()));
        if (!sender) return false;
        PCCL_TRY(check_sender(*sender));
        PCCL_ASSIGN_OR_RETURN(expected.link, answer(expected, *sender));
        const int events = expected.link->connector->event_fd();
        if (events >= 0) PCCL_TRY(receiver.watch(events));
    }
    PCCL_ASSIGN_OR_RETURN(const bool is_connected, expected.link->connector->advance());
    if (!is_connected) return false;
    PCCL_TRY(hand_over(expected, receiver));
    return true;
}

Result<std::unique_ptr<VerbsTransport::IncomingLink>> VerbsTransport::answer(
    const Expected& expected, const LinkEnd& sender) const {
    PCCL_ASSIGN_OR_RETURN(const ConnectWay agreed, agree(way(), sender.way));
    auto link = std::make_unique<IncomingLink>();
    PCCL_ASSIGN_OR_RETURN(link->lanes, make_lanes(ports_, options_.queue_pairs));
    const std::size_t possible = std::min(link->lanes.count(), sender.lanes.size());
    const std::vector<LaneEnd> partners = link->lanes.choose_partners(sender.lanes);
    if (partners.size() < possible)
        log(LogLevel::kInfo, "RDMA link from ", peer_name(expected.request().source),
            " goes without ", possible - partners.size(),
            " queue pairs: their ports share no subnet with the peer's");
    link->connector = make_connector(agreed, Connector::Role::kResponder);
    PCCL_TRY(link->connector->start(link->lanes.pairs(), partners));
    const std::uint32_t bytes =
        std::min(sender.ring_bytes, ring_bytes(expected.request().group_size));
    PCCL_ASSIGN_OR_RETURN(link->rings, make_rings(link->lanes, bytes, Access::kPeerWrite));
    PCCL_ASSIGN_OR_RETURN(link->slots, make_memory(link->lanes, bytes_of_slots(link->lanes.count()),
                                                   Access::kPeerWrite));
    PCCL_ASSIGN_OR_RETURN(link->credits, make_memory(link->lanes, kPageBytes, Access::kLocal));
    link->here = {.ring_bytes = bytes,
                  .receives = kReceives,
                  .way = agreed,
                  .memory = {link->rings[0].range(), link->rings[1].range(), link->slots.range()},
                  .lanes = link->lanes.ends()};
    link->connector->describe(link->here.lanes);
    link->sender = sender.memory.front();
    PCCL_TRY(send_message(expected.from.socket.get(), link->here));
    return link;
}

Status VerbsTransport::hand_over(Expected& expected, LinkReceiver& receiver) {
    IncomingLink& link = *expected.link;
    link.end_connecting(receiver);
    const LinkRequest& request = expected.request();
    const int socket = expected.from.socket.get();
    receiver.unwatch(socket);
    std::string name = name_of(request.source, socket);
    sys::give_up_after(socket, options_.peer_timeout);
    WatchedSocket watched(std::move(expected.from.socket), waiter_);
    PCCL_TRY(watched.watch());
    PeerWatch watch(
        {.self = request.destination, .leaver = request.source, .ranks = request.group_size},
        std::move(watched));
    receiver.accepted(
        request, std::make_unique<VerbsRecvLink>(RecvLinkParts{.peer = request.source,
                                                               .peer_name = std::move(name),
                                                               .lanes = std::move(link.lanes),
                                                               .rings = std::move(link.rings),
                                                               .slots = std::move(link.slots),
                                                               .credits = std::move(link.credits),
                                                               .here = std::move(link.here),
                                                               .sender = std::move(link.sender),
                                                               .watch = std::move(watch)}));
    return Status::ok();
}

}  // namespace pccl::transport::verbs
