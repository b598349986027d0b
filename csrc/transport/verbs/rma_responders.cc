// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/rma_responders.h"

#include <array>
#include <chrono>
#include <utility>

#include <pccl/deadline.h>
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/rma_requests.h"

namespace pccl::transport::verbs {
namespace {

constexpr QueueDepths kResponder{.sends = 1, .receives = kImmediatesOfPair};
constexpr Duration kFlushTimeout = std::chrono::milliseconds(100);

}  // namespace

RmaMessage RmaResponders::open(const RmaMessage& request) {
    RmaMessage answer{.kind = RmaMessage::Kind::kOpened,
                      .lane = request.lane,
                      .pair = request.pair,
                      .failure = {},
                      .end = request.end};
    Responder& responder = responders_[request.lane];
    responder = {};
    const std::shared_ptr<Port> port = ports_.of_responder(request.lane, request.end.pair.gid);
    auto pair = QueuePair::create(port, kResponder);
    auto connector = ports_.connector(way_, Connector::Role::kResponder);
    answer.failure = pair.status();
    if (answer.failure.is_ok()) answer.failure = (*pair)->post_receives(kImmediatesOfPair);
    if (answer.failure.is_ok())
        answer.failure = connector->start(std::array{pair->get()}, {&request.end, 1});
    if (!answer.failure.is_ok()) return answer;
    responder = {
        .pair = std::move(pair).value(), .connector = std::move(connector), .number = request.pair};
    answer.end = {.device = static_cast<std::uint8_t>(ports_.device_of(*port)),
                  .pair = responder.pair->address()};
    responder.connector->describe({&answer.end, 1});
    return answer;
}

RmaMessage RmaResponders::close(const RmaMessage& request) {
    RmaMessage answer{.kind = RmaMessage::Kind::kClosed,
                      .lane = request.lane,
                      .pair = request.pair,
                      .failure = {},
                      .end = {}};
    Responder& responder = responders_[request.lane];
    if (responder.number != request.pair) return answer;
    if (responder.pair != nullptr) {
        responder.pair->fail();
        // Each receive request completes, successfully or not.
        const Deadline deadline = Deadline::after(kFlushTimeout);
        while (responder.pair != nullptr && !deadline.passed() &&
               responder.received < kImmediatesOfPair + responder.credited)
            static_cast<void>(take_arrival(request.lane));
    }
    responder.connector.reset();
    responder.pair.reset();
    answer.immediates = responder.arrived;
    return answer;
}

void RmaResponders::advance() {
    for (Responder& responder : responders_) {
        if (responder.connector == nullptr) continue;
        const auto connected = responder.connector->advance();
        if (!connected.is_ok())
            drop(responder, std::string(connected.status().message()));
        else if (*connected)
            responder.connector.reset();
    }
}

/// Ends a queue pair: the initiator finds that nobody answers.
void RmaResponders::drop(Responder& responder, const std::string& why) {
    log(LogLevel::kWarning, "RDMA access of ", peer_name_, " loses a path: ", why);
    responder.connector.reset();
    responder.pair.reset();
}

bool RmaResponders::has_arrived(const RmaImmediate& immediate) {
    if (immediate.lane >= responders_.size()) return false;
    const Responder& responder = responders_[immediate.lane];
    if (responder.number != immediate.pair) return false;
    if (responder.arrived >= immediate.number) return true;
    while (take_arrival(immediate.lane)) continue;
    replenish(immediate.lane);
    return responder.arrived >= immediate.number;
}

bool RmaResponders::take_arrival(std::size_t lane) {
    Responder& responder = responders_[lane];
    if (responder.pair == nullptr) return false;
    // The initiator finds by itself that a device has failed.
    const auto completion = responder.pair->next();
    if (!completion.is_ok() || !*completion) return false;
    ++responder.received;
    if ((*completion)->status != IBV_WC_SUCCESS) return true;
    const RmaImmediate next{.lane = static_cast<std::uint32_t>(lane),
                            .pair = responder.number,
                            .number = responder.arrived + 1};
    if ((*completion)->immediate == value_of(next))
        ++responder.arrived;
    else
        drop(responder, concat("it sent the immediate ", (*completion)->immediate, " instead of ",
                               value_of(next)));
    return true;
}

void RmaResponders::replenish(std::size_t lane) {
    Responder& responder = responders_[lane];
    const std::uint32_t count = responder.arrived - responder.credited;
    if (responder.pair == nullptr || count < kImmediatesOfPair / 2 || mailbox_.is_full()) return;
    if (!responder.pair->post_receives(static_cast<int>(count)).is_ok()) return;
    responder.credited = responder.arrived;
    mailbox_.add({.kind = RmaMessage::Kind::kCredit,
                  .lane = static_cast<std::uint8_t>(lane),
                  .pair = responder.number,
                  .immediates = responder.credited,
                  .failure = {},
                  .end = {}});
}

}  // namespace pccl::transport::verbs
