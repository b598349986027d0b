#include "csrc/transport/shm/shm_transport.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/handshake.h"

namespace pccl::transport::shm {
namespace {

// "v1;<host>;unix:@<name>"
constexpr std::string_view kVersion = "v1;";
constexpr Duration kPatience = std::chrono::seconds(5);
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

Result<sys::Address> fresh_name() {
    std::array<std::uint8_t, 16> random{};
    PCCL_TRY(sys::fill_random(random));
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string name = "pccl-";
    for (const std::uint8_t byte : random) {
        name += kHex[byte >> 4];
        name += kHex[byte & 15];
    }
    return sys::Address::from_unix_name(name);
}

Status same_user(int socket) {
    PCCL_ASSIGN_OR_RETURN(const sys::Credentials peer, sys::peer_credentials(socket));
    if (peer.uid == ::geteuid()) return Status::ok();
    return Status::unavailable(
        concat("process ", peer.pid, " runs as user ", peer.uid, ", this one as ", ::geteuid()));
}

Result<std::vector<UniqueFd>> wait_for_parcel(int socket, std::byte tag, Deadline deadline) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(auto parcel, sys::receive_descriptors(socket));
        if (parcel && parcel->tag == tag) return std::move(parcel->descriptors);
        if (parcel) return Status::internal("a peer answered out of turn");
        if (deadline.passed()) return Status::timeout("timed out waiting for the peer's doorbell");
        const sys::Interest readable{.fd = socket, .input = true};
        sys::wait_for_any({&readable, 1}, deadline.remaining());
    }
}

}  // namespace

bool same_host(const std::string& a, const std::string& b) {
    const auto first = parse_address(a);
    const auto second = parse_address(b);
    return first.is_ok() && second.is_ok() && (*first).host == (*second).host;
}

Result<std::unique_ptr<ShmTransport>> ShmTransport::create(Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(std::string host, sys::host_identity());
    std::unique_ptr<ShmTransport> transport(new ShmTransport(waiter, std::move(host)));
    PCCL_ASSIGN_OR_RETURN(const sys::Address name, fresh_name());
    PCCL_ASSIGN_OR_RETURN(transport->server_,
                          HandshakeServer::listen(name, {.kind = TransportKind::kShm}));
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

Result<std::unique_ptr<SendLink>> ShmTransport::connect(const std::string& address,
                                                        const LinkRequest& request,
                                                        const Secret& secret, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const ParsedAddress peer, parse_address(address));
    const Introduction introduction{.request = request};
    PCCL_ASSIGN_OR_RETURN(
        auto sockets,
        connect_authenticated({.address = peer.socket, .secret = secret, .stream = {}},
                              {&introduction, 1}, deadline));
    UniqueFd socket = std::move(sockets.front());
    PCCL_TRY(same_user(socket.get()));
    PCCL_ASSIGN_OR_RETURN(auto rings, RingFile::create(ring_bytes(request.group_size)));
    const std::array<int, 2> memory{rings->memfd().get(), waiter_.memfd()};
    PCCL_ASSIGN_OR_RETURN(const bool sent, sys::send_descriptors(socket.get(), kMemory, memory));
    if (!sent) return Status::resource_exhausted("a fresh unix socket takes no descriptors");
    auto answer = wait_for_parcel(socket.get(), kWelcome, deadline);
    if (!answer.is_ok()) {
        const Status why = answer.status();
        return Status(why.code(), why.message(), request.destination);
    }
    if ((*answer).size() != 1) return Status::internal("the peer's doorbell is missing");
    PCCL_ASSIGN_OR_RETURN(auto doorbell, RemoteDoorbell::map((*answer).front().get()));
    rings->memfd().reset();
    auto wire = std::make_unique<PeerWire>(request.destination, std::move(socket),
                                           std::move(doorbell), waiter_);
    return std::unique_ptr<SendLink>(new ShmSendLink(std::move(rings), std::move(wire)));
}

void ShmTransport::accept(Acceptor& acceptor) {
    server_->advance(acceptor, [&](UniqueFd socket, const Introduction& introduction) {
        if (const Status watched = server_->watch(socket.get()); !watched.is_ok())
            return acceptor.refused(kind(), watched);
        arrivals_.push_back({std::move(socket), introduction.request, Deadline::after(kPatience)});
    });
    arrivals_.remove_if([&](Arrival& arrival) { return receive_memory(arrival, acceptor); });
}

bool ShmTransport::receive_memory(Arrival& arrival, Acceptor& acceptor) {
    auto parcel = sys::receive_descriptors(arrival.socket.get());
    if (parcel.is_ok() && !(*parcel).has_value()) {
        if (!arrival.deadline.passed()) return false;
        acceptor.refused(kind(), Status::timeout("a proven peer sent no memory in time"));
        return true;
    }
    server_->unwatch(arrival.socket.get());
    auto link = parcel.is_ok() ? make_receiver(arrival, std::move((*parcel)->descriptors))
                               : Result<std::unique_ptr<RecvLink>>(parcel.status());
    if (link.is_ok())
        acceptor.accepted(arrival.request, std::move(*link));
    else
        acceptor.refused(kind(), link.status());
    return true;
}

Result<std::unique_ptr<RecvLink>> ShmTransport::make_receiver(Arrival& arrival,
                                                              std::vector<UniqueFd> memory) {
    if (memory.size() != 2) return Status::invalid_argument("a proven peer sent no memory");
    PCCL_TRY(same_user(arrival.socket.get()));
    PCCL_ASSIGN_OR_RETURN(
        auto rings, RingFile::map(std::move(memory[0]), ring_bytes(arrival.request.group_size)));
    PCCL_ASSIGN_OR_RETURN(auto doorbell, RemoteDoorbell::map(memory[1].get()));
    const int own = waiter_.memfd();
    PCCL_ASSIGN_OR_RETURN(const bool sent,
                          sys::send_descriptors(arrival.socket.get(), kWelcome, {&own, 1}));
    if (!sent) return Status::resource_exhausted("a fresh unix socket takes no descriptors");
    rings->memfd().reset();
    auto wire = std::make_unique<PeerWire>(arrival.request.source, std::move(arrival.socket),
                                           std::move(doorbell), waiter_);
    return std::unique_ptr<RecvLink>(new ShmRecvLink(std::move(rings), std::move(wire)));
}

}  // namespace pccl::transport::shm
