#include "csrc/p2p/approach.h"

#include <span>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::p2p {
namespace {

/// Both ends of a connection.
constexpr int kEnds = 2;

/// Whether this process copies from and to the peer's memory by itself.
Status reaches(transport::Transport& transport, const ConnectionInfo& peer) {
    if (transport.kind() != transport::TransportKind::kShm)
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

}  // namespace

Result<std::unique_ptr<Approach>> Approach::dial(const ConnectionInfo& peer,
                                                 transport::Transport& transport,
                                                 std::uint64_t number, Path path) {
    const transport::LinkRequest request{
        .group = peer.group, .source = kNoRank, .destination = kNoRank, .group_size = kEnds};
    PCCL_ASSIGN_OR_RETURN(auto dialled, transport.connect(peer.address, request, peer.secret));
    return std::unique_ptr<Approach>(new Approach(std::move(dialled), number, std::move(path)));
}

Result<std::unique_ptr<Approach>> Approach::call(const OwnSide& own, const ConnectionInfo& peer,
                                                 const Status& wanted,
                                                 std::vector<std::uint64_t> ended) {
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t number, random_number());
    return begin({.own = own, .peer = peer, .wanted = wanted, .ended = std::move(ended)}, number);
}

Result<std::unique_ptr<Approach>> Approach::begin(Attempt attempt, std::uint64_t number) {
    const OwnSide& own = attempt.own;
    const ConnectionInfo& peer = attempt.peer;
    const Status& wanted = attempt.wanted;
    auto way = own.runtime.route_to(peer.address, own.allowed.without(attempt.failed));
    if (!way.is_ok())
        return way.status().with_message(
            concat("no transport leads there from here", way.status().message()));
    const Status reach = wanted.is_ok() ? reaches(*way->transport, peer) : wanted;
    Path path{.kind = way->transport->kind(), .is_direct = reach.is_ok()};
    if (way->reasons.size() > 2) path.reasons = way->reasons.substr(2);  // behind "; "
    if (!attempt.failure.is_ok()) path.reasons = joined(path.reasons, attempt.failure.message());
    if (!reach.is_ok()) path.reasons = joined(path.reasons, reach.message());
    PCCL_ASSIGN_OR_RETURN(auto approach, dial(peer, *way->transport, number, std::move(path)));
    approach->is_aside_ = !wanted.is_ok();
    approach->greeting_ = frame_of(Hello{.number = number,
                                         .reaches = reach.is_ok(),
                                         .is_aside = approach->is_aside_,
                                         .ended = attempt.ended,
                                         .from = own.info});
    approach->attempt_.emplace(std::move(attempt));
    return approach;
}

bool Approach::try_next_transport(const Status& failure) {
    const bool may_be_elsewhere = failure.code() == StatusCode::kPeerLost ||
                                  failure.code() == StatusCode::kUnavailable ||
                                  failure.code() == StatusCode::kUnsupported;
    if (!attempt_ || !may_be_elsewhere) return false;
    Attempt attempt = *attempt_;
    attempt.failed = attempt.failed | path_.kind;
    if (attempt.failure.is_ok()) attempt.failure = failure;
    auto next = begin(std::move(attempt), number_);
    if (!next.is_ok()) return false;
    dial_ = std::move((*next)->dial_);
    path_ = std::move((*next)->path_);
    greeting_ = std::move((*next)->greeting_);
    attempt_.emplace(std::move(*(*next)->attempt_));
    return true;
}

Result<std::unique_ptr<Approach>> Approach::answer(const OwnSide& own, const Hello& hello,
                                                   std::unique_ptr<transport::RecvLink> in) {
    auto* const transport = own.runtime.find(in->kind());
    if (transport == nullptr) return Status::internal("a stream of a transport that is not here");
    const Status reach = reaches(*transport, hello.from);
    const bool both = hello.reaches && reach.is_ok();
    Path path{.kind = transport->kind(), .is_direct = both};
    if (!reach.is_ok())
        path.reasons = reach.message();
    else if (!both)
        path.reasons = "the peer does not reach this process's memory";
    PCCL_ASSIGN_OR_RETURN(auto approach,
                          dial(hello.from, *transport, hello.number, std::move(path)));
    approach->is_aside_ = hello.is_aside;
    approach->streams_.in = std::move(in);
    approach->greeting_ = frame_of(Welcome{.number = hello.number, .reaches = both});
    return approach;
}

void Approach::welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in) {
    streams_.in = std::move(in);
    if (path_.is_direct && !welcome.reaches) {
        path_.is_direct = false;
        path_.reasons = joined(path_.reasons, "the peer does not reach this process's memory");
    }
}

Result<bool> Approach::advance() {
    if (dial_ != nullptr) {
        auto out = dial_->advance();
        if (!out.is_ok() && try_next_transport(out.status())) return false;
        if (!out.is_ok())
            return attempt_ && !attempt_->failure.is_ok() ? attempt_->failure : out.status();
        if (*out == nullptr) return false;
        streams_.out = std::move(*out);
        dial_.reset();
    }
    PCCL_ASSIGN_OR_RETURN(const bool said, say_greeting());
    if (said && streams_.in != nullptr) return true;
    // Who refuses a connection says why, and goes.
    PCCL_TRY(streams_.out->look());
    return false;
}

Result<bool> Approach::say_greeting() {
    const auto rest = std::as_bytes(std::span(greeting_)).subspan(said_);
    if (!rest.empty()) {
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t sent,
            streams_.out->send(transport::kRmaChannel, rest, transport::Flush::kNow));
        said_ += sent;
    }
    if (said_ < greeting_.size()) return false;
    return streams_.out->flush(transport::kRmaChannel);
}

Status Approach::late() const {
    if (dial_ != nullptr) return dial_->late();
    return Status::timeout(streams_.in == nullptr
                               ? "it took the connection, but has not answered in time"
                               : "it does not take what is said to it");
}

void Approach::give_up(const Status& reason) {
    dial_.reset();
    if (streams_.out != nullptr) streams_.out->abort(reason);
    if (streams_.in != nullptr) streams_.in->abort(reason);
}

}  // namespace pccl::p2p
