// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/connection_setup.h"

#include <span>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/p2p/transfers/registered_memory.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::p2p {
namespace {

/// Number of ends of a connection.
constexpr int kEnds = 2;

/// Returns ok where this process, or its RDMA device, reaches the peer's memory by itself.
Status reaches(transport::Transport& transport, const ConnectionInfo& peer) {
    if (!transport::is_one_sided(transport.kind()))
        return Status::unsupported("another host's memory is reached with its help");
    PCCL_ASSIGN_OR_RETURN(const auto one_sided, transport.one_sided());
    return one_sided->reaches(peer.probe);
}

Result<std::uint64_t> random_number() {
    std::uint64_t number = 0;
    PCCL_TRY(sys::fill_random({reinterpret_cast<std::uint8_t*>(&number), sizeof number}));
    return number;
}

std::string joined(const std::string& reasons, const std::string& more) {
    return reasons.empty() ? more : concat(reasons, "; ", more);
}

std::string_view how(const ConnectionRoute& route, const Plan& plan) {
    if (!route.is_direct) return "by messages";
    if (route.kind == transport::TransportKind::kVerbs) return "by RDMA";
    const bool here = registered(plan.local()).memory().kind == abi::MemoryKind::kGpu;
    const bool there = plan.remote().is_gpu();
    if (here && there) return "by CUDA IPC";
    if (here || there) return "through pinned memory";
    return plan.remote().imported().is_mapped ? "mapped" : "by the kernel";
}

}  // namespace

runtime::SessionPath route_of(const ConnectionRoute& route, const Plan& plan) {
    return {.kind = to_string(route.kind), .how = how(route, plan)};
}

transport::LinkRequest request_to(const ConnectionInfo& peer) {
    return {.group = peer.group, .source = kNoRank, .destination = kNoRank, .group_size = kEnds};
}

Result<std::unique_ptr<ConnectionSetup>> ConnectionSetup::start_connect(
    const ConnectionInfo& peer, transport::Transport& transport, std::uint64_t number,
    ConnectionRoute route) {
    PCCL_ASSIGN_OR_RETURN(auto connected,
                          transport.connect(peer.address, request_to(peer), peer.secret));
    return std::unique_ptr<ConnectionSetup>(
        new ConnectionSetup(std::move(connected), number, std::move(route)));
}

Result<std::unique_ptr<ConnectionSetup>> ConnectionSetup::begin(const OwnSide& own,
                                                                const ConnectionInfo& peer,
                                                                const Status& wanted,
                                                                std::vector<std::uint64_t> ended) {
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t number, random_number());
    return begin({.own = own, .peer = peer, .wanted = wanted, .ended = std::move(ended)}, number);
}

Result<std::unique_ptr<ConnectionSetup>> ConnectionSetup::begin(SetupAttempt attempt,
                                                                std::uint64_t number) {
    const OwnSide& own = attempt.own;
    const ConnectionInfo& peer = attempt.peer;
    const Status& wanted = attempt.wanted;
    auto chosen = own.runtime.route_to(peer.address, own.allowed.without(attempt.failed));
    if (!chosen.is_ok())
        return chosen.status().with_message(
            concat("no transport leads there from here", chosen.status().message()));
    const Status reachable = wanted.is_ok() ? reaches(*chosen->transport, peer) : wanted;
    ConnectionRoute route{.kind = chosen->transport->kind(), .is_direct = reachable.is_ok()};
    if (chosen->reasons.size() > 2) route.reasons = chosen->reasons.substr(2);  // skips "; "
    if (!attempt.failure.is_ok()) route.reasons = joined(route.reasons, attempt.failure.message());
    if (!reachable.is_ok()) route.reasons = joined(route.reasons, reachable.message());
    PCCL_ASSIGN_OR_RETURN(auto setup,
                          start_connect(peer, *chosen->transport, number, std::move(route)));
    setup->is_fallback_ = !wanted.is_ok();
    setup->handshake_ = frame_of(Hello{.number = number,
                                       .reaches = reachable.is_ok(),
                                       .is_fallback = setup->is_fallback_,
                                       .cores = own.cores,
                                       .ended = attempt.ended,
                                       .from = own.info});
    setup->attempt_.emplace(std::move(attempt));
    return setup;
}

bool ConnectionSetup::try_next_transport(const Status& failure) {
    const bool may_be_elsewhere = failure.code() == StatusCode::kPeerLost ||
                                  failure.code() == StatusCode::kUnavailable ||
                                  failure.code() == StatusCode::kUnsupported;
    if (!attempt_ || !may_be_elsewhere) return false;
    SetupAttempt attempt = *attempt_;
    attempt.failed = attempt.failed | route_.kind;
    if (attempt.failure.is_ok()) attempt.failure = failure;
    auto next = begin(std::move(attempt), number_);
    if (!next.is_ok()) return false;
    pending_connect_ = std::move((*next)->pending_connect_);
    route_ = std::move((*next)->route_);
    handshake_ = std::move((*next)->handshake_);
    attempt_.emplace(std::move(*(*next)->attempt_));
    return true;
}

Result<std::unique_ptr<ConnectionSetup>> ConnectionSetup::answer(
    const OwnSide& own, const Hello& hello, std::unique_ptr<transport::RecvLink> in) {
    auto* const transport = own.runtime.find(in->kind());
    if (transport == nullptr) return Status::internal("a stream of a transport that is not here");
    const Status reachable = reaches(*transport, hello.from);
    const bool both = hello.reaches && reachable.is_ok();
    ConnectionRoute route{.kind = transport->kind(), .is_direct = both};
    if (!reachable.is_ok())
        route.reasons = reachable.message();
    else if (!both)
        route.reasons = "the peer does not reach this process's memory";
    auto setup = start_connect(hello.from, *transport, hello.number, std::move(route));
    if (!setup.is_ok()) {
        in->abort(setup.status());
        return setup;
    }
    (*setup)->is_fallback_ = hello.is_fallback;
    (*setup)->streams_.in = std::move(in);
    (*setup)->count_lanes(own, hello.from, hello.cores);
    (*setup)->handshake_ =
        frame_of(Welcome{.number = hello.number, .reaches = both, .cores = own.cores});
    return setup;
}

void ConnectionSetup::welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in) {
    streams_.in = std::move(in);
    if (attempt_) count_lanes(attempt_->own, attempt_->peer, welcome.cores);
    if (route_.is_direct && !welcome.reaches) {
        route_.is_direct = false;
        route_.reasons = joined(route_.reasons, "the peer does not reach this process's memory");
    }
}

void ConnectionSetup::count_lanes(const OwnSide& own, const ConnectionInfo& peer,
                                  const bootstrap::CoreClaim& cores) {
    const bool is_on_host = own.info.address.control.host == peer.address.control.host;
    lanes_ = lanes_between(own.cores, cores, is_on_host, own.runtime.waiter()->crowd());
}

Result<bool> ConnectionSetup::advance() {
    if (pending_connect_ != nullptr) {
        auto out = pending_connect_->advance();
        if (!out.is_ok() && try_next_transport(out.status())) return false;
        if (!out.is_ok())
            return attempt_ && !attempt_->failure.is_ok() ? attempt_->failure : out.status();
        if (*out == nullptr) return false;
        streams_.out = std::move(*out);
        pending_connect_.reset();
    }
    PCCL_ASSIGN_OR_RETURN(const bool sent, send_handshake());
    if (sent && streams_.in != nullptr) return true;
    // A peer that refuses a connection sends its reason and closes.
    PCCL_TRY(streams_.out->look());
    return false;
}

Result<bool> ConnectionSetup::send_handshake() {
    const auto rest = std::as_bytes(std::span(handshake_)).subspan(sent_bytes_);
    if (!rest.empty()) {
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t sent,
            streams_.out->send(transport::kRmaChannel, rest, transport::Flush::kNow));
        sent_bytes_ += sent;
    }
    if (sent_bytes_ < handshake_.size()) return false;
    return streams_.out->flush(transport::kRmaChannel);
}

Status ConnectionSetup::timeout_error() const {
    if (pending_connect_ != nullptr) return pending_connect_->timeout_error();
    return Status::timeout(streams_.in == nullptr
                               ? "it took the connection, but has not answered in time"
                               : "it does not take the handshake");
}

void ConnectionSetup::give_up(const Status& reason) {
    pending_connect_.reset();
    if (streams_.out != nullptr) streams_.out->abort(reason);
    if (streams_.in != nullptr) streams_.in->abort(reason);
}

}  // namespace pccl::p2p
