// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_rendezvous.h"

#include <chrono>
#include <utility>

#include "csrc/abi/device_team.h"
#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/bounded_store.h"
#include "csrc/sys/host.h"

namespace pccl::device {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);

constexpr std::size_t kLongestText = 1 * kKiB;

/// Returns a vote: a rank's status and its published text.
std::string vote_of(const Status& status, std::string_view text = {}) {
    ByteWriter out;
    out.status(status, kLongestText);
    out.text(text);
    return out.take();
}

/// Returns the text of a vote, or its objection.
Result<std::string> text_in(std::string_view vote) {
    ByteReader in(vote);
    Status objection;
    std::string text;
    PCCL_TRY(in.status(objection, kLongestText));
    PCCL_TRY(objection);
    PCCL_TRY(in.text(text, kLongestText));
    return text;
}

Status named(Rank rank, const Status& status) {
    return status.with_message(concat("rank ", rank, ": ", status.message()));
}

Deadline deadline_of(const DeviceRendezvous::RendezvousOptions& options) {
    const Deadline deadline = Deadline::after(options.timeout);
    if (options.cancellation == nullptr) return deadline;
    return deadline.unless(options.cancellation->is_set());
}

DeviceRendezvous::RendezvousOptions with_bounded_store(
    DeviceRendezvous::RendezvousOptions options) {
    if (options.store == nullptr) return options;
    const auto store = std::make_shared<bootstrap::BoundedStore>(options.store, options.timeout);
    store->limit(deadline_of(options));
    options.store = store;
    return options;
}

}  // namespace

Status check(const DeviceRendezvous::RendezvousOptions& options) {
    if (options.size < 1 || options.size > abi::kMostDevices)
        return Status::unsupported(concat("a group of ", options.size, " GPUs on one host; 1 to ",
                                          abi::kMostDevices, " work"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    return Status::ok();
}

DeviceRendezvous::DeviceRendezvous(RendezvousOptions options)
    : options_(with_bounded_store(std::move(options))), deadline_(deadline_of(options_)) {}

bool DeviceRendezvous::is_cancelled() const {
    return options_.cancellation != nullptr && options_.cancellation->is_set().load();
}

std::string DeviceRendezvous::key(std::string_view subject, Rank rank) const {
    return concat("pccl/gpu/", subject, "/", rank);
}

Status DeviceRendezvous::publish(std::string_view subject, const std::string& what) const {
    return options_.store->set(key(subject, options_.rank), what);
}

template <typename Get>
auto DeviceRendezvous::get_unless_refused(Rank awaited,
                                          Get get) const -> decltype(get(Deadline::never())) {
    for (;;) {
        auto got = get(deadline_.within(kBetweenLooks));
        if (got.status().code() != StatusCode::kTimeout || deadline_.passed()) return got;
        PCCL_TRY(objection());
        warn_late(awaited);
    }
}

void DeviceRendezvous::warn_late(Rank awaited) const {
    if (const Duration waited = system_clock().now() - begun_; notice_.is_due(waited))
        log(LogLevel::kWarning, "rank ", options_.rank, " of ", options_.size, " has waited ",
            in_seconds(waited), " at ", options_.store->where(), " for rank ", awaited,
            " to publish its GPU");
}

Result<std::string> DeviceRendezvous::receive(Rank peer, std::string_view subject) const {
    auto value = get_unless_refused(
        peer, [&](Deadline soon) { return options_.store->get(key(subject, peer), soon); });
    if (value.status().code() != StatusCode::kTimeout) return value;
    return Status::timeout(concat("rank ", peer, " has not published its GPU"), peer);
}

Result<bootstrap::GroupIdentity> DeviceRendezvous::agree_on_identity() const {
    return get_unless_refused(0, [&](Deadline soon) {
        return bootstrap::agree_on_identity(*options_.store, options_.rank,
                                            {.size = options_.size, .deadline = soon});
    });
}

Result<std::unique_ptr<transport::nvlink::PeerSockets>> DeviceRendezvous::connect() const {
    constexpr std::string_view kSubject = "address";
    transport::nvlink::PeerSocketsOptions own{.rank = options_.rank, .size = options_.size};
    if (options_.size > 1) {
        PCCL_ASSIGN_OR_RETURN(const bootstrap::GroupIdentity identity, agree_on_identity());
        own.group = identity.group;
        own.secret = identity.secret;
    }
    PCCL_ASSIGN_OR_RETURN(auto sockets, transport::nvlink::PeerSockets::listen(own));
    if (options_.size == 1) return sockets;
    PCCL_TRY(publish(kSubject, sockets->address()));
    std::vector<std::string> addresses(static_cast<std::size_t>(options_.size));
    for (Rank peer = 0; peer < options_.rank; ++peer) {
        PCCL_ASSIGN_OR_RETURN(addresses[static_cast<std::size_t>(peer)], receive(peer, kSubject));
    }
    PCCL_TRY(sockets->connect(addresses, deadline_, [this] { return objection(); }));
    return sockets;
}

Status DeviceRendezvous::objection() const {
    for (Rank rank = 0; rank < options_.size; ++rank) {
        const auto value = options_.store->get(key("met", rank), Deadline::after(Duration::zero()));
        if (value.is_ok()) PCCL_TRY(text_in(*value).status());
    }
    return Status::ok();
}

Result<std::vector<std::string>> DeviceRendezvous::votes(std::string_view subject) const {
    std::vector<std::string> texts;
    for (Rank rank = 0; rank < options_.size; ++rank) {
        PCCL_ASSIGN_OR_RETURN(const std::string value, receive(rank, subject));
        PCCL_ASSIGN_OR_RETURN(std::string text, text_in(value));
        texts.push_back(std::move(text));
    }
    return texts;
}

Status DeviceRendezvous::agree_on_host(const Status& here) {
    PCCL_ASSIGN_OR_RETURN(const std::string identity, sys::host_identity());
    PCCL_ASSIGN_OR_RETURN(const std::string kernel, sys::kernel_identity());
    const std::string host = concat(identity, "/", kernel, "/", sys::user_identity());
    Status published = as_published(here);
    if (options_.size == 1) return published;
    PCCL_TRY(publish("host", vote_of(published, host)));
    PCCL_ASSIGN_OR_RETURN(const auto hosts, votes("host"));
    for (std::size_t rank = 1; rank < hosts.size(); ++rank)
        if (hosts[rank] != hosts.front())
            return Status::unsupported(
                concat("rank ", rank, " is on another host than rank 0, or runs as another user"));
    return Status::ok();
}

Status DeviceRendezvous::as_published(const Status& why) const {
    const StatusCode code = why.code();
    if (code == StatusCode::kOk || code == StatusCode::kPeerLost || code == StatusCode::kMismatch)
        return why;
    if (code == StatusCode::kUnavailable) return named(options_.rank, why);
    const bool is_leaving = code == StatusCode::kAborted;
    return named(options_.rank, is_leaving ? Status::peer_lost(options_.rank, why.message())
                                           : Status::unsupported(why.message()));
}

Status DeviceRendezvous::vote_on(const Status& met) const {
    Status published = met.is_ok() ? met : objection();
    if (published.is_ok()) published = as_published(met);
    return publish("met", vote_of(published));
}

Status DeviceRendezvous::call_off() const {
    const Status& why = options_.cancellation->why();
    if (options_.size > 1) PCCL_TRY(publish("met", vote_of(as_published(why))));
    return why;
}

}  // namespace pccl::device
