#include "csrc/transport/tcp/tcp_transport.h"

#include <algorithm>
#include <iterator>

#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/tcp/recv_link.h"
#include "csrc/transport/tcp/send_link.h"

namespace pccl::transport::tcp {
namespace {

constexpr Duration kAssemblyPatience = std::chrono::seconds(10);

bool same_link(const LinkRequest& a, const LinkRequest& b) {
    return a.source == b.source && a.destination == b.destination && a.channel == b.channel;
}

std::string name_of(Rank rank, int socket) {
    const auto address = sys::peer_address(socket);
    return concat("rank ", rank, " at ",
                  address.is_ok() ? address->to_string() : "an address that is gone");
}

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::create(Waiter& waiter,
                                                           const TcpOptions& options) {
    const auto most = static_cast<int>(SocketPurpose::kMostDataSockets);
    if (options.data_sockets < 1 || options.data_sockets > most)
        return Status::invalid_argument(
            concat("a link has 1 to ", most, " data sockets, not ", options.data_sockets));
    std::unique_ptr<TcpTransport> transport(new TcpTransport(waiter, options));
    PCCL_TRY(transport->start());
    return transport;
}

Status TcpTransport::start() {
    PCCL_ASSIGN_OR_RETURN(const auto interfaces, sys::list_interfaces());
    PCCL_ASSIGN_OR_RETURN(const auto chosen, sys::choose_interface(interfaces, options_.interface));
    PCCL_ASSIGN_OR_RETURN(own_.host, sys::host_identity());
    PCCL_ASSIGN_OR_RETURN(
        server_, HandshakeServer::listen(chosen.address,
                                         {.kind = TransportKind::kTcp, .stream = options_.stream}));
    own_.address = server_->address();
    interface_index_ = chosen.index;
    return Status::ok();
}

Status TcpTransport::reaches(const std::string& address) const {
    PCCL_ASSIGN_OR_RETURN(const PublishedAddress peer, PublishedAddress::parse(address));
    if (peer.host == own_.host) return Status::ok();
    if (peer.address.is_loopback())
        return Status::unavailable(
            concat("the peer listens at ", peer.address.to_string(), " of another host"));
    return Status::ok();
}

Result<std::unique_ptr<SendLink>> TcpTransport::connect(const std::string& address,
                                                        const LinkRequest& request,
                                                        const Secret& secret, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const PublishedAddress peer, PublishedAddress::parse(address));
    const sys::Address& there = peer.address;
    const DialArgs args{
        .address = there.is_link_local() ? there.with_scope(interface_index_) : there,
        .secret = secret,
        .stream = options_.stream};
    PCCL_ASSIGN_OR_RETURN(const auto introduced, introductions(request));
    PCCL_ASSIGN_OR_RETURN(auto sockets, connect_authenticated(args, introduced, deadline));
    std::string name = name_of(request.destination, sockets[0].get());
    PCCL_ASSIGN_OR_RETURN(auto channels, make_channels(std::move(sockets), options_.block_bytes));
    return std::unique_ptr<SendLink>(std::make_unique<TcpSendLink>(
        LinkParts{request.destination, std::move(name), std::move(channels)}));
}

Result<std::vector<Introduction>> TcpTransport::introductions(const LinkRequest& request) const {
    SocketPurpose purpose{.data_sockets = static_cast<std::uint32_t>(options_.data_sockets),
                          .block_bytes = static_cast<std::uint32_t>(options_.block_bytes)};
    PCCL_TRY(sys::fill_random(purpose.link));
    std::vector<Introduction> introduced;
    for (; purpose.index <= purpose.data_sockets; ++purpose.index)
        introduced.push_back({.request = request, .purpose = purpose.encode()});
    return introduced;
}

/// `sockets` in the order of SocketPurpose::index.
Result<std::vector<Stripes>> TcpTransport::make_channels(std::vector<UniqueFd> sockets,
                                                         std::size_t block) const {
    std::vector<WatchedSocket> watched;
    for (UniqueFd& socket : sockets) {
        watched.emplace_back(std::move(socket), waiter_);
        PCCL_TRY(watched.back().watch());
    }
    std::vector<WatchedSocket> message;
    message.push_back(std::move(watched.front()));
    std::vector<WatchedSocket> collective(std::make_move_iterator(watched.begin() + 1),
                                          std::make_move_iterator(watched.end()));
    static_assert(kCollectiveChannel == 0 && kMessageChannel == 1 && kChannels == 2);
    std::vector<Stripes> channels;
    channels.emplace_back(std::move(collective), block);
    channels.emplace_back(std::move(message), block);
    return channels;
}

void TcpTransport::accept(Acceptor& acceptor) {
    server_->advance(acceptor, [&](UniqueFd socket, const Introduction& introduction) {
        const Status fault = arrived(std::move(socket), introduction, acceptor);
        if (!fault.is_ok()) acceptor.refused(kind(), fault);
    });
    give_up_incomplete(acceptor);
}

Status TcpTransport::arrived(UniqueFd socket, const Introduction& introduction,
                             Acceptor& acceptor) {
    const LinkRequest& request = introduction.request;
    PCCL_ASSIGN_OR_RETURN(const SocketPurpose purpose, SocketPurpose::decode(introduction.purpose));
    const LinkKey key{request.group, purpose.link};
    auto found = assemblies_.find(key);
    if (found == assemblies_.end()) {
        Assembly fresh{.request = request,
                       .purpose = purpose,
                       .deadline = Deadline::after(kAssemblyPatience),
                       .sockets = std::vector<UniqueFd>(purpose.data_sockets + 1),
                       .missing = purpose.data_sockets + 1};
        found = assemblies_.emplace(key, std::move(fresh)).first;
    }
    Assembly& assembly = found->second;
    if (!same_link(assembly.request, request) || purpose.index >= assembly.sockets.size() ||
        assembly.sockets[purpose.index].is_open()) {
        return Status::invalid_argument(
            concat("rank ", request.source, " sent a socket that does not belong to its link"));
    }
    assembly.sockets[purpose.index] = std::move(socket);
    if (--assembly.missing > 0) return Status::ok();
    Assembly whole = std::move(assembly);
    assemblies_.erase(found);
    std::string name = name_of(request.source, whole.sockets[0].get());
    PCCL_ASSIGN_OR_RETURN(auto channels,
                          make_channels(std::move(whole.sockets), whole.purpose.block_bytes));
    acceptor.accepted(whole.request, std::make_unique<TcpRecvLink>(LinkParts{
                                         request.source, std::move(name), std::move(channels)}));
    return Status::ok();
}

void TcpTransport::give_up_incomplete(Acceptor& acceptor) {
    std::erase_if(assemblies_, [&](const auto& entry) {
        const Assembly& assembly = entry.second;
        if (!assembly.deadline.passed()) return false;
        acceptor.refused(kind(), Status::timeout(concat("rank ", assembly.request.source,
                                                        " opened only some sockets of a link")));
        return true;
    });
}

}  // namespace pccl::transport::tcp
