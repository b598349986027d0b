#include "csrc/transport/tcp/tcp_transport.h"

#include <algorithm>
#include <iterator>

#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/host.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/tcp/recv_link.h"
#include "csrc/transport/tcp/send_link.h"

namespace pccl::transport::tcp {
namespace {

constexpr Duration kAssemblyPatience = std::chrono::seconds(10);

bool same_link(const LinkRequest& a, const LinkRequest& b) {
    return a.source == b.source && a.destination == b.destination && a.channel == b.channel;
}

Introduction introduce(const LinkRequest& request, Service service, const Purpose& purpose = {}) {
    return {.request = request,
            .service = service,
            .transport = static_cast<std::uint8_t>(TransportKind::kTcp),
            .purpose = purpose};
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
        server_, HandshakeServer::listen(chosen.address, {.way = to_string(TransportKind::kTcp),
                                                          .stream = options_.stream}));
    own_.address = server_->address();
    interface_ = chosen;
    return Status::ok();
}

Status TcpTransport::reaches(const std::string& address) const {
    PCCL_ASSIGN_OR_RETURN(const PublishedAddress peer, PublishedAddress::parse(address));
    if (peer.host == own_.host) return Status::ok();
    if (peer.address.is_loopback())
        return Status::unavailable(
            concat("the peer listens at ", peer.address.to_string(), " of another host"));
    return look_at_interface();
}

Status TcpTransport::look_at_interface() const {
    // A cable without a signal may have been cut at its other end, so it proves nothing.
    PCCL_ASSIGN_OR_RETURN(const auto interfaces, sys::list_interfaces());
    const auto is_up = [this](const sys::Interface& i) {
        return i.index == interface_.index && i.enabled;
    };
    if (std::ranges::any_of(interfaces, is_up)) return Status::ok();
    return Status::unavailable(
        concat("the interface ", interface_.name, " of this host is switched off"));
}

class TcpTransport::TcpDial final : public Dial {
   public:
    TcpDial(const TcpTransport& transport, const LinkRequest& request,
            std::unique_ptr<HandshakeClient> client)
        : transport_(transport), request_(request), client_(std::move(client)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        PCCL_ASSIGN_OR_RETURN(const bool accepted, client_->advance());
        if (!accepted) return std::unique_ptr<SendLink>();
        const Departure departure{
            .self = request_.source, .leaver = request_.destination, .ranks = request_.group_size};
        PCCL_ASSIGN_OR_RETURN(auto parts, transport_.make_parts(departure, client_->take_sockets(),
                                                                transport_.options_.block_bytes));
        return std::unique_ptr<SendLink>(std::make_unique<TcpSendLink>(std::move(parts)));
    }
    [[nodiscard]] Status late() const override { return client_->late(); }

   private:
    const TcpTransport& transport_;
    const LinkRequest request_;
    const std::unique_ptr<HandshakeClient> client_;
};

Result<std::unique_ptr<Dial>> TcpTransport::dial(const std::string& address,
                                                 const LinkRequest& request, const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(const DialArgs args, dial_args(address, secret));
    PCCL_ASSIGN_OR_RETURN(const auto introduced, introductions(request));
    PCCL_ASSIGN_OR_RETURN(auto client, HandshakeClient::start(args, introduced, &waiter_));
    return std::unique_ptr<Dial>(std::make_unique<TcpDial>(*this, request, std::move(client)));
}

Result<DialArgs> TcpTransport::dial_args(const std::string& address, const Secret& secret) const {
    PCCL_ASSIGN_OR_RETURN(const PublishedAddress peer, PublishedAddress::parse(address));
    const sys::Address& there = peer.address;
    return DialArgs{.address = there.is_link_local() ? there.with_scope(interface_.index) : there,
                    .secret = secret,
                    .stream = options_.stream};
}

Result<std::string> TcpTransport::inquire(const std::string& address, const LinkRequest& request,
                                          const Secret& secret, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const DialArgs args, dial_args(address, secret));
    return transport::inquire(args, introduce(request, Service::kQuery), deadline);
}

Status TcpTransport::tell(const std::string& address, const LinkRequest& request,
                          const Secret& secret, const Status& reason, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const DialArgs args, dial_args(address, secret));
    const auto introduction = introduce(request, Service::kNotice, purpose_of(notice_of(reason)));
    return connect_authenticated(args, {&introduction, 1}, deadline).status();
}

Status TcpTransport::knock(const std::string& address, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const DialArgs args, dial_args(address, {}));
    return transport::knock(args.address, deadline);
}

Result<std::vector<Introduction>> TcpTransport::introductions(const LinkRequest& request) const {
    SocketPurpose purpose{.data_sockets = static_cast<std::uint32_t>(options_.data_sockets),
                          .block_bytes = static_cast<std::uint32_t>(options_.block_bytes)};
    PCCL_TRY(sys::fill_random(purpose.link));
    std::vector<Introduction> introduced;
    for (; purpose.index < purpose.sockets(); ++purpose.index)
        introduced.push_back(introduce(request, Service::kLink, purpose.encode()));
    return introduced;
}

Result<LinkParts> TcpTransport::make_parts(const Departure& departure,
                                           std::vector<UniqueFd> sockets, std::size_t block) const {
    std::string name = name_of(departure.leaver, sockets.front().get());
    sys::give_up_after(sockets.back().get(), options_.peer_timeout);
    std::vector<WatchedSocket> watched;
    for (UniqueFd& socket : sockets) {
        watched.emplace_back(std::move(socket), waiter_);
        PCCL_TRY(watched.back().watch());
    }
    PeerWatch watch(departure, std::move(watched.back()));
    std::vector<WatchedSocket> message;
    message.push_back(std::move(watched.front()));
    std::vector<WatchedSocket> collective(std::make_move_iterator(watched.begin() + 1),
                                          std::make_move_iterator(watched.end() - 1));
    static_assert(kCollectiveChannel == 0 && kMessageChannel == 1 && kChannels == 2);
    std::vector<Stripes> channels;
    channels.emplace_back(std::move(collective), block, options_.peer_timeout);
    channels.emplace_back(std::move(message), block, options_.peer_timeout);
    return LinkParts{departure.leaver, std::move(name), std::move(channels), std::move(watch)};
}

void TcpTransport::accept(Acceptor& acceptor) {
    server_->advance(acceptor, [&](UniqueFd socket, const Introduction& introduction) {
        const Status fault = arrived(std::move(socket), introduction, acceptor);
        if (fault.code() == StatusCode::kResourceExhausted)
            acceptor.fell_short(introduction.request, kind(), fault);
        else if (!fault.is_ok())
            acceptor.refused(to_string(kind()), fault);
    });
    give_up_incomplete(acceptor);
}

Status TcpTransport::arrived(UniqueFd socket, const Introduction& introduction,
                             Acceptor& acceptor) {
    const LinkRequest& request = introduction.request;
    if (introduction.service == Service::kQuery) {
        answer(socket.get(), acceptor.describe(request));
        return Status::ok();
    }
    if (introduction.service == Service::kNotice) {
        acceptor.noticed(request, reason_of(word_in<Notice>(introduction.purpose)));
        return Status::ok();
    }
    PCCL_ASSIGN_OR_RETURN(const SocketPurpose purpose, SocketPurpose::decode(introduction.purpose));
    PCCL_TRY(server_->shortage());
    const LinkKey key{request.group, purpose.link};
    auto found = assemblies_.find(key);
    if (found == assemblies_.end()) {
        Assembly fresh{.request = request,
                       .purpose = purpose,
                       .deadline = Deadline::after(kAssemblyPatience),
                       .sockets = std::vector<UniqueFd>(purpose.sockets()),
                       .missing = purpose.sockets()};
        found = assemblies_.emplace(key, std::move(fresh)).first;
    }
    Assembly& assembly = found->second;
    if (!same_link(assembly.request, request) || purpose.index >= assembly.sockets.size() ||
        assembly.sockets[purpose.index].is_open()) {
        return Status::invalid_argument(
            concat("rank ", request.source, " sent a socket that does not belong to its link"));
    }
    PCCL_TRY(server_->watch(socket.get()));
    assembly.sockets[purpose.index] = std::move(socket);
    if (--assembly.missing > 0) return Status::ok();
    for (const UniqueFd& known : assembly.sockets) server_->unwatch(known.get());
    Assembly whole = std::move(assembly);
    assemblies_.erase(found);
    const Departure departure{
        .self = request.destination, .leaver = request.source, .ranks = request.group_size};
    PCCL_ASSIGN_OR_RETURN(
        auto parts, make_parts(departure, std::move(whole.sockets), whole.purpose.block_bytes));
    acceptor.accepted(whole.request, std::make_unique<TcpRecvLink>(std::move(parts)));
    return Status::ok();
}

/// Nothing is sent on a link before it is whole: what can be read is the end of a socket.
bool TcpTransport::Assembly::is_given_up() const {
    std::vector<sys::Interest> ends;
    for (const UniqueFd& socket : sockets)
        if (socket.is_open()) ends.push_back({.fd = socket.get(), .input = true});
    return sys::wait_for_any(ends, Duration::zero());
}

void TcpTransport::give_up_incomplete(Acceptor& acceptor) {
    std::erase_if(assemblies_, [&](const auto& entry) {
        const Assembly& assembly = entry.second;
        const std::string source = concat("rank ", assembly.request.source);
        if (assembly.is_given_up())
            acceptor.refused(to_string(kind()),
                             Status::unavailable(concat(source, " gave up opening a link")));
        else if (assembly.deadline.passed())
            acceptor.refused(
                to_string(kind()),
                Status::timeout(concat(source, " opened only some sockets of a link")));
        else
            return false;
        return true;
    });
}

}  // namespace pccl::transport::tcp
