// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/tcp_transport.h"

#include <algorithm>
#include <iterator>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/transport/tcp/path_choice.h"
#include "csrc/transport/tcp/recv_link.h"
#include "csrc/transport/tcp/send_link.h"
#include "csrc/transport/tcp/send_paths.h"

namespace pccl::transport::tcp {
namespace {

constexpr Duration kAssemblyTimeout = std::chrono::seconds(10);

bool same_link(const LinkRequest& a, const LinkRequest& b) {
    return a.source == b.source && a.destination == b.destination && a.channel == b.channel;
}

Result<PeerRoutes> routes_to(const NetworkSide& here, const PeerAddress& peer) {
    const auto found = peer.links.find(TransportKind::kTcp);
    if (found != peer.links.end()) return here.routes_to(peer.control, found->second);
    return peer.first_of(TransportKind::kTcp).status();
}

std::string name_of(Rank rank, int socket) {
    const auto address = sys::peer_address(socket);
    return concat(peer_name(rank), " at ",
                  address.is_ok() ? address->to_string() : "an address that is gone");
}

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::create(Waiter& waiter, NetworkSide here,
                                                           const TcpOptions& options) {
    const auto most = static_cast<int>(SocketPurpose::kMostDataSockets);
    if (options.data_sockets >= 1 && options.data_sockets <= most)
        return std::unique_ptr<TcpTransport>(new TcpTransport(waiter, std::move(here), options));
    return Status::invalid_argument(
        concat("a link has 1 to ", most, " data sockets, not ", options.data_sockets));
}

Status TcpTransport::reaches(const PeerAddress& peer) const {
    return routes_to(here_, peer).status();
}

/// Connection attempt: opens the sockets of a link.
class TcpTransport::TcpPendingConnect final : public PendingConnect {
   public:
    TcpPendingConnect(const TcpTransport& transport, const LinkRequest& request, std::size_t block,
                      std::unique_ptr<RoutedHandshake> handshake)
        : transport_(transport),
          request_(request),
          block_(block),
          handshake_(std::move(handshake)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        PCCL_ASSIGN_OR_RETURN(const bool accepted, handshake_->advance());
        if (!accepted) return std::unique_ptr<SendLink>();
        const CloseContext close_context{
            .self = request_.source, .leaver = request_.destination, .ranks = request_.group_size};
        PCCL_ASSIGN_OR_RETURN(
            auto parts, transport_.make_parts(close_context, handshake_->take_sockets(), block_));
        return std::unique_ptr<SendLink>(std::make_unique<TcpSendLink>(std::move(parts)));
    }
    [[nodiscard]] Status timeout_error() const override { return handshake_->timeout_error(); }

   private:
    const TcpTransport& transport_;
    const LinkRequest request_;
    const std::size_t block_;
    const std::unique_ptr<RoutedHandshake> handshake_;
};

/// Connection attempt of a link over several paths: opens the sockets of the first one.
class TcpTransport::MultipathPendingConnect final : public PendingConnect {
   public:
    MultipathPendingConnect(const TcpTransport& transport, PathsOfLink paths,
                            std::unique_ptr<RoutedHandshake> handshake)
        : transport_(transport), paths_(std::move(paths)), handshake_(std::move(handshake)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        PCCL_ASSIGN_OR_RETURN(const bool accepted, handshake_->advance());
        if (!accepted) return std::unique_ptr<SendLink>();
        std::vector<UniqueFd> sockets = handshake_->take_sockets();
        PCCL_TRY(put_first(sockets.front().get()));
        const std::string name = name_of(paths_.request.destination, sockets.front().get());
        const auto paths = std::make_shared<SendPaths>(std::move(paths_), name, transport_.waiter_,
                                                       transport_.keeper_, transport_.path_log_);
        PCCL_TRY(paths->take(0, std::move(sockets)));
        transport_.keeper_->add(paths);
        return std::unique_ptr<SendLink>(std::make_unique<MultipathSendLink>(paths));
    }
    [[nodiscard]] Status timeout_error() const override { return handshake_->timeout_error(); }

   private:
    /// Moves the path of a socket before the others.
    Status put_first(int socket) {
        PCCL_ASSIGN_OR_RETURN(const sys::Address near, sys::local_address(socket));
        PCCL_ASSIGN_OR_RETURN(const sys::Address far, sys::peer_address(socket));
        std::vector<PathRoute>& routes = paths_.routes;
        const auto is_own = [&](const PathRoute& route) {
            return route.far.same_ip(far) && route.interface.address.same_ip(near);
        };
        auto own = std::ranges::find_if(routes, is_own);
        if (own == routes.end())
            own = std::ranges::find_if(
                routes, [&](const PathRoute& route) { return route.far.same_ip(far); });
        if (own == routes.end()) own = routes.begin();
        own->far = far;
        own->interface.address = near.with_port(0);
        std::rotate(routes.begin(), own, own + 1);
        return Status::ok();
    }

    const TcpTransport& transport_;
    PathsOfLink paths_;
    const std::unique_ptr<RoutedHandshake> handshake_;
};

Result<std::unique_ptr<PendingConnect>> TcpTransport::connect(const PeerAddress& peer,
                                                              const LinkRequest& request,
                                                              const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(PeerRoutes routes, routes_to(here_, peer));
    auto paths = paths_to(peer, routes, request.destination);
    if (paths.size() > 1)
        return connect_paths({.host = peer.control.host,
                              .routes = std::move(routes),
                              .request = request,
                              .secret = secret,
                              .stream = options_.stream,
                              .introductions = {}},
                             std::move(paths));
    const std::size_t block = block_for(peer);
    PCCL_ASSIGN_OR_RETURN(auto introduced, introductions(request, block));
    PCCL_ASSIGN_OR_RETURN(auto handshake,
                          RoutedHandshake::start({.host = peer.control.host,
                                                  .routes = std::move(routes),
                                                  .request = request,
                                                  .secret = secret,
                                                  .stream = options_.stream,
                                                  .introductions = std::move(introduced)},
                                                 here_.proven, waiter_));
    return std::unique_ptr<PendingConnect>(
        std::make_unique<TcpPendingConnect>(*this, request, block, std::move(handshake)));
}

std::vector<PathRoute> TcpTransport::paths_to(const PeerAddress& peer, const PeerRoutes& routes,
                                              Rank rank) const {
    if (here_.is_near(peer.control)) {
        const PathRoute route{.interface = here_.doors.front().interface,
                              .far = routes.addresses.front()};
        return std::vector<PathRoute>(options_.near_paths, route);
    }
    std::vector<sys::Interface> interfaces;
    interfaces.reserve(here_.doors.size());
    for (const NetworkDoor& door : here_.doors) interfaces.push_back(door.interface);
    auto own = one_of_each(interfaces, "");
    if (!options_.has_named_interfaces) drop_internal(own);
    if (own.size() < 2 && routes.addresses.size() < 2) return {};
    return routes_over(own, routes.addresses, rank);
}

Result<std::unique_ptr<PendingConnect>> TcpTransport::connect_paths(RoutedHandshake::Target target,
                                                                    std::vector<PathRoute> routes) {
    const std::size_t sockets = static_cast<std::size_t>(options_.data_sockets) / routes.size();
    PathsOfLink paths{
        .routes = std::move(routes),
        .request = target.request,
        .secret = target.secret,
        .stream = options_.stream,
        .peer_timeout = options_.peer_timeout,
        .purpose = {.data_sockets = static_cast<std::uint32_t>(std::max<std::size_t>(sockets, 1)),
                    .block_bytes = kPieceBytes}};
    PCCL_TRY(sys::fill_random(paths.purpose.link));
    target.introductions = paths.introductions(0, 0);
    PCCL_ASSIGN_OR_RETURN(auto handshake,
                          RoutedHandshake::start(std::move(target), here_.proven, waiter_));
    return std::unique_ptr<PendingConnect>(
        std::make_unique<MultipathPendingConnect>(*this, std::move(paths), std::move(handshake)));
}

std::size_t TcpTransport::block_for(const PeerAddress& peer) const {
    return peer.control.host == here_.process.host ? options_.near_block_bytes
                                                   : options_.block_bytes;
}

Result<std::vector<Introduction>> TcpTransport::introductions(const LinkRequest& request,
                                                              std::size_t block) const {
    SocketPurpose purpose{.data_sockets = static_cast<std::uint32_t>(options_.data_sockets),
                          .block_bytes = static_cast<std::uint32_t>(block)};
    PCCL_TRY(sys::fill_random(purpose.link));
    std::vector<Introduction> introduced;
    for (; purpose.index < purpose.sockets(); ++purpose.index)
        introduced.push_back({.request = request,
                              .service = Service::kLink,
                              .transport = static_cast<std::uint8_t>(TransportKind::kTcp),
                              .purpose = purpose.encode()});
    return introduced;
}

Result<LinkParts> TcpTransport::make_parts(const CloseContext& close_context,
                                           std::vector<UniqueFd> sockets, std::size_t block) const {
    std::string name = name_of(close_context.leaver, sockets.front().get());
    PCCL_ASSIGN_OR_RETURN(auto all, watched(std::move(sockets)));
    PeerWatch watch(close_context, std::move(all.back()));
    std::vector<WatchedSocket> message;
    message.push_back(std::move(all.front()));
    std::vector<WatchedSocket> collective(std::make_move_iterator(all.begin() + 1),
                                          std::make_move_iterator(all.end() - 1));
    static_assert(kCollectiveChannel == 0 && kMessageChannel == 1 && kChannels == 2);
    std::vector<Stripes> channels;
    channels.emplace_back(std::move(collective), block, options_.peer_timeout);
    channels.emplace_back(std::move(message), block, options_.peer_timeout);
    return LinkParts{close_context.leaver, std::move(name), std::move(channels), std::move(watch)};
}

Result<std::vector<WatchedSocket>> TcpTransport::watched(std::vector<UniqueFd> sockets) const {
    sys::give_up_after(sockets.back().get(), options_.peer_timeout);
    std::vector<WatchedSocket> all;
    for (UniqueFd& socket : sockets) {
        all.emplace_back(std::move(socket), waiter_);
        PCCL_TRY(all.back().watch());
    }
    return all;
}

void TcpTransport::accept(Arrival arrival, LinkReceiver& receiver) {
    const LinkRequest request = arrival.introduction.request;
    // The socket of a fault stays open meanwhile: this process reports its cause before the peer
    // notices the consequence.
    const Status fault = take_up(arrival, receiver);
    if (fault.code() == StatusCode::kResourceExhausted)
        receiver.fell_short(request, kind(), fault);
    else if (!fault.is_ok())
        receiver.refused(to_string(kind()), fault);
}

Status TcpTransport::take_up(Arrival& arrival, LinkReceiver& receiver) {
    const LinkRequest& request = arrival.introduction.request;
    PCCL_ASSIGN_OR_RETURN(const SocketPurpose purpose,
                          SocketPurpose::decode(arrival.introduction.purpose));
    PCCL_TRY(arrival.shortage);
    const auto found = begin_or_find(request, purpose);
    Assembly& assembly = found->second;
    if (!same_link(assembly.request, request) || purpose.index >= assembly.sockets.size() ||
        assembly.sockets[purpose.index].is_open()) {
        return Status::invalid_argument(
            concat(peer_name(request.source), " sent a socket that does not belong to its link"));
    }
    PCCL_TRY(receiver.watch(arrival.socket.get()));
    assembly.sockets[purpose.index] = std::move(arrival.socket);
    if (--assembly.missing > 0) return Status::ok();
    Assembly whole = std::move(assembly);
    assemblies_.erase(found);
    return finish(std::move(whole), receiver);
}

std::map<TcpTransport::AssemblyKey, TcpTransport::Assembly>::iterator TcpTransport::begin_or_find(
    const LinkRequest& request, const SocketPurpose& purpose) {
    const AssemblyKey key{{request.group, purpose.link}, purpose.path, purpose.attempt};
    const auto found = assemblies_.find(key);
    if (found != assemblies_.end()) return found;
    Assembly fresh{.request = request,
                   .purpose = purpose,
                   .deadline = Deadline::after(kAssemblyTimeout),
                   .sockets = std::vector<UniqueFd>(purpose.sockets()),
                   .missing = purpose.sockets()};
    return assemblies_.emplace(key, std::move(fresh)).first;
}

Status TcpTransport::finish(Assembly whole, LinkReceiver& receiver) {
    for (const UniqueFd& socket : whole.sockets) receiver.unwatch(socket.get());
    const LinkRequest& request = whole.request;
    const CloseContext close_context{
        .self = request.destination, .leaver = request.source, .ranks = request.group_size};
    if (whole.purpose.is_one_of_several())
        return finish_path(std::move(whole), close_context, receiver);
    PCCL_ASSIGN_OR_RETURN(
        auto parts, make_parts(close_context, std::move(whole.sockets), whole.purpose.block_bytes));
    receiver.accepted(request, std::make_unique<TcpRecvLink>(std::move(parts)));
    return Status::ok();
}

Status TcpTransport::finish_path(Assembly whole, const CloseContext& close_context,
                                 LinkReceiver& receiver) {
    const LinkKey key{whole.request.group, whole.purpose.link};
    std::string name = name_of(close_context.leaver, whole.sockets.front().get());
    PCCL_ASSIGN_OR_RETURN(auto sockets, watched(std::move(whole.sockets)));
    if (whole.purpose.begins_link()) {
        std::erase_if(multipath_, [](const auto& each) { return each.second.expired(); });
        const auto paths =
            std::make_shared<RecvPaths>(close_context, std::move(name), options_.peer_timeout);
        paths->begin(std::move(sockets));
        multipath_[key] = paths;
        receiver.accepted(whole.request, std::make_unique<MultipathRecvLink>(paths));
        return Status::ok();
    }
    const auto found = multipath_.find(key);
    const auto paths = found == multipath_.end() ? nullptr : found->second.lock();
    if (paths == nullptr)
        return Status::unavailable(concat(name, " adds a path to a link that is closed"));
    paths->join(whole.purpose.path - 1, std::move(sockets));
    waiter_.wake();
    return Status::ok();
}

/// Returns whether the peer gave up. A link carries nothing before it is complete: a readable
/// socket has ended.
bool TcpTransport::Assembly::is_given_up() const {
    std::vector<sys::Interest> ends;
    for (const UniqueFd& socket : sockets)
        if (socket.is_open()) ends.push_back({.fd = socket.get(), .input = true});
    return sys::wait_for_any(ends, Duration::zero());
}

void TcpTransport::advance(LinkReceiver& receiver) {
    std::erase_if(assemblies_, [&](const auto& entry) {
        const Assembly& assembly = entry.second;
        const std::string source = peer_name(assembly.request.source);
        if (assembly.is_given_up())
            receiver.refused(to_string(kind()),
                             Status::unavailable(concat(source, " gave up opening a link")));
        else if (assembly.deadline.passed())
            receiver.refused(
                to_string(kind()),
                Status::timeout(concat(source, " opened only some sockets of a link")));
        else
            return false;
        return true;
    });
}

}  // namespace pccl::transport::tcp
