// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/cm_connector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/socket/interfaces.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::CmChannel;
using sys::verbs::CmEvent;
using sys::verbs::CmId;

// Limits of each step, and of all together.
constexpr int kStepMilliseconds = 2000;
constexpr Duration kConnectTimeout = std::chrono::seconds(8);
constexpr int kBacklog = 64;

/// What the initiator sends to the responder with its request.
std::string request_data(const CmToken& token, std::uint8_t index) {
    std::string data(reinterpret_cast<const char*>(token.data()), token.size());
    data.push_back(static_cast<char>(index));
    return data;
}

bool has_token(std::string_view data, const CmToken& token) {
    // Devices may pad the data.
    if (data.size() <= token.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < token.size(); ++i)
        difference |= static_cast<std::uint8_t>(data[i]) ^ unsigned { token[i] };
    return difference == 0;
}

std::vector<sys::Address> addresses_for(const Port& port) {
    std::vector<sys::Address> addresses;
    const bool is_routable = !port.gid.is_link_local() && !port.is_iwarp();
    if (const auto own = sys::Address::from_ip(port.gid.address(), 0); is_routable && own.is_ok())
        addresses.push_back(*own);
    if (const auto interfaces = sys::list_interfaces(); interfaces.is_ok())
        for (const sys::Interface& each : *interfaces)
            if (each.running && !each.address.is_link_local()) addresses.push_back(each.address);
    return addresses;
}

struct BoundId {
    CmId id;
    sys::Address address;  // port 0
};

/// Creates an id at an address of a port: that of its GID, or else of a network interface that
/// leads to it.
Result<BoundId> bind_to_port(const std::shared_ptr<CmChannel>& channel, const Port& port) {
    for (const sys::Address& address : addresses_for(port)) {
        PCCL_ASSIGN_OR_RETURN(CmId id, CmId::create(channel));
        if (!id.bind(*address.raw()).is_ok() || id.device() != port.adapter->name() ||
            id.port() != port.info.number)
            continue;
        return BoundId{.id = std::move(id), .address = address};
    }
    return Status::unavailable(
        concat("rdma_cm finds no IP address of ", port.name(),
               ": its network interface needs one (`rdma link` shows the interface)"));
}

sys::verbs::CmParameters parameters_of(const QueuePair& pair, const LaneEnd& peer) {
    return {.data = {},
            .pair = pair.address().number,
            .reads_here = pair.address().reads,
            .reads_there = pair.reads_at(peer.pair),
            .retries = static_cast<std::uint8_t>(process_config().rdma.retry_count)};
}

/// Moves a pair to a state; the kernel does that for iWARP.
Status enter(QueuePair& pair, const LaneEnd& peer, const CmId& id, ibv_qp_state state) {
    if (pair.is_iwarp()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const CmId::Attributes attributes, id.attributes(state));
    return pair.enter(attributes.values, attributes.mask, peer.pair);
}

Status enter_all(QueuePair& pair, const LaneEnd& peer, const CmId& id) {
    PCCL_TRY(enter(pair, peer, id, IBV_QPS_INIT));
    PCCL_TRY(enter(pair, peer, id, IBV_QPS_RTR));
    return enter(pair, peer, id, IBV_QPS_RTS);
}

Status cm_failure(const QueuePair& pair, const sys::Address& peer, const CmEvent& event) {
    const bool is_refused = event.name.ends_with("REJECTED");
    return Status::unavailable(
        concat("rdma_cm connects no queue pair of ", pair.port().name(), " to ", peer.to_string(),
               " (", event.name, ", status ", event.status, ")",
               is_refused ? "; the peer listens there no more: its log has the reason"
                          : "; check the routes between both ports, and firewalls"));
}

Status late(std::size_t left, std::size_t all) {
    return Status::timeout(concat("rdma_cm has connected ", all - left, " of ", all,
                                  " queue pairs in ", kConnectTimeout / std::chrono::seconds(1),
                                  " s; check the routes between both ports, and firewalls"));
}

}  // namespace

Status CmInitiator::start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) {
    deadline_ = Deadline::after(kConnectTimeout);
    PCCL_ASSIGN_OR_RETURN(channel_, CmChannel::create());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        attempts_.push_back(
            {.pair = pairs[i], .peer = peer[i], .index = static_cast<std::uint8_t>(i)});
        PCCL_TRY(begin(attempts_.back()));
    }
    left_ = attempts_.size();
    return Status::ok();
}

Status CmInitiator::begin(Attempt& attempt) {
    if (!attempt.peer.door.is_set())
        return Status::invalid_argument("the peer describes no way to connect by rdma_cm");
    PCCL_ASSIGN_OR_RETURN(BoundId bound, bind_to_port(channel_, attempt.pair->port()));
    attempt.id.emplace(std::move(bound.id));
    PCCL_ASSIGN_OR_RETURN(const sys::Address there, attempt.peer.door.to_address());
    return attempt.id->resolve_address(*there.raw(), kStepMilliseconds);
}

Result<bool> CmInitiator::advance() {
    while (left_ > 0) {
        PCCL_ASSIGN_OR_RETURN(const auto event, CmChannel::next(channel_));
        if (!event) break;
        const auto found = std::ranges::find_if(attempts_, [&](const Attempt& attempt) {
            return attempt.id && attempt.id->is(event->of);
        });
        if (found == attempts_.end()) continue;
        PCCL_ASSIGN_OR_RETURN(const bool is_connected, take(*found, *event));
        if (!is_connected) continue;
        found->pair->keep(*std::exchange(found->id, std::nullopt));
        --left_;
    }
    if (left_ > 0 && deadline_.passed()) return late(left_, attempts_.size());
    return left_ == 0;
}

Result<bool> CmInitiator::take(Attempt& attempt, const CmEvent& event) {
    switch (event.kind) {
        case CmEvent::Kind::kAddressResolved:
            PCCL_TRY(attempt.id->resolve_route(kStepMilliseconds));
            return false;
        case CmEvent::Kind::kRouteResolved:
            PCCL_TRY(request(attempt));
            return false;
        case CmEvent::Kind::kResponse:
            PCCL_TRY(enter_all(*attempt.pair, attempt.peer, *attempt.id));
            PCCL_TRY(attempt.id->establish());
            return true;
        case CmEvent::Kind::kEstablished:
            return true;
        default:
            break;
    }
    PCCL_ASSIGN_OR_RETURN(const sys::Address there, attempt.peer.door.to_address());
    return cm_failure(*attempt.pair, there, event);
}

Status CmInitiator::request(Attempt& attempt) {
    const std::string data = request_data(attempt.peer.door.token, attempt.index);
    sys::verbs::CmParameters parameters = parameters_of(*attempt.pair, attempt.peer);
    parameters.data = data;
    return attempt.id->connect(parameters);
}

Status CmResponder::start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) {
    deadline_ = Deadline::after(kConnectTimeout);
    PCCL_TRY(sys::fill_random(token_));
    PCCL_ASSIGN_OR_RETURN(channel_, CmChannel::create());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        PCCL_ASSIGN_OR_RETURN(const CmDoor door, door_of(pairs[i]->port()));
        expected_.push_back({.pair = pairs[i], .peer = peer[i], .door = door});
    }
    left_ = expected_.size();
    return Status::ok();
}

Result<CmDoor> CmResponder::door_of(const Port& port) {
    const auto found = std::ranges::find(listeners_, &port, &Listener::port);
    if (found != listeners_.end()) return found->door;
    PCCL_ASSIGN_OR_RETURN(BoundId bound, bind_to_port(channel_, port));
    PCCL_TRY(bound.id.listen(kBacklog));
    const CmDoor door = CmDoor::at(bound.address.with_port(bound.id.local_port()), token_);
    listeners_.push_back({.port = &port, .id = std::move(bound.id), .door = door});
    return door;
}

void CmResponder::describe(std::span<LaneEnd> ends) const {
    for (std::size_t i = 0; i < std::min(ends.size(), expected_.size()); ++i)
        ends[i].door = expected_[i].door;
}

Result<bool> CmResponder::advance() {
    while (left_ > 0) {
        PCCL_ASSIGN_OR_RETURN(auto event, CmChannel::next(channel_));
        if (!event) break;
        if (event->kind == CmEvent::Kind::kRequest) {
            PCCL_TRY(take_request(*std::move(event)));
            continue;
        }
        const auto found = std::ranges::find_if(expected_, [&](const Expectation& expected) {
            return expected.id && expected.id->is(event->of);
        });
        if (found == expected_.end()) continue;
        if (event->kind != CmEvent::Kind::kEstablished)
            return cm_failure(*found->pair, sys::Address(), *event);
        connected(*found);
    }
    if (left_ > 0 && deadline_.passed()) return late(left_, expected_.size());
    return left_ == 0;
}

Status CmResponder::take_request(CmEvent event) {
    Expectation* const expected = expected_by(event);
    if (expected == nullptr) {
        // A stranger's connection ends with its id.
        static_cast<void>(event.id->reject());
        return Status::ok();
    }
    expected->is_taken = true;
    expected->id = std::move(event.id);
    return accept(*expected);
}

CmResponder::Expectation* CmResponder::expected_by(const CmEvent& event) {
    if (!has_token(event.data, token_)) return nullptr;
    const auto index = static_cast<std::uint8_t>(event.data[token_.size()]);
    if (index >= expected_.size() || expected_[index].is_taken) return nullptr;
    return &expected_[index];
}

Status CmResponder::accept(Expectation& expected) {
    PCCL_TRY(enter_all(*expected.pair, expected.peer, *expected.id));
    PCCL_TRY(expected.id->accept(parameters_of(*expected.pair, expected.peer)));
    // The last message of InfiniBand's exchange may be lost, as bytes behind it show. The pair of
    // an iWARP device is connected once the kernel has moved it.
    if (!expected.pair->is_iwarp()) connected(expected);
    return Status::ok();
}

void CmResponder::connected(Expectation& expected) {
    expected.pair->keep(*std::exchange(expected.id, std::nullopt));
    --left_;
}

}  // namespace pccl::transport::verbs
