// SPDX-License-Identifier: Apache-2.0

// Connectors by rdma_cm. The responder listens at an address of each of its ports until all its
// queue pairs are connected. Requests without the token of its description are rejected, and take
// no queue pair.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/sys/verbs/connection_manager.h"
#include "csrc/transport/verbs/connector.h"

namespace pccl::transport::verbs {

class CmInitiator final : public Connector {
   public:
    Status start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) override;
    void describe(std::span<LaneEnd>) const override {}
    Result<bool> advance() override;
    [[nodiscard]] int event_fd() const override { return channel_ ? channel_->fd() : -1; }

   private:
    struct Attempt {
        QueuePair* pair = nullptr;
        LaneEnd peer;
        std::uint8_t index = 0;
        std::optional<sys::verbs::CmId> id{};  // until the pair is connected
    };
    Status begin(Attempt& attempt);
    /// Takes an event of an attempt; true: its pair is connected.
    Result<bool> take(Attempt& attempt, const sys::verbs::CmEvent& event);
    Status request(Attempt& attempt);

    std::shared_ptr<sys::verbs::CmChannel> channel_;
    std::vector<Attempt> attempts_;
    std::size_t left_ = 0;
    Deadline deadline_ = Deadline::never();
};

class CmResponder final : public Connector {
   public:
    Status start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) override;
    void describe(std::span<LaneEnd> ends) const override;
    Result<bool> advance() override;
    [[nodiscard]] int event_fd() const override { return channel_ ? channel_->fd() : -1; }

   private:
    struct Expectation {
        QueuePair* pair = nullptr;
        LaneEnd peer;
        CmDoor door;
        bool is_taken = false;
        std::optional<sys::verbs::CmId> id{};  // between the request and the connection
    };
    struct Listener {
        const Port* port;
        sys::verbs::CmId id;
        CmDoor door;
    };
    Result<CmDoor> door_of(const Port& port);
    Status take_request(sys::verbs::CmEvent event);
    /// Returns the pair that a request names with the token; null: it is a stranger's.
    Expectation* expected_by(const sys::verbs::CmEvent& event);
    Status accept(Expectation& expected);
    void connected(Expectation& expected);

    std::shared_ptr<sys::verbs::CmChannel> channel_;
    CmToken token_{};
    std::vector<Listener> listeners_;
    std::vector<Expectation> expected_;
    std::size_t left_ = 0;
    Deadline deadline_ = Deadline::never();
};

}  // namespace pccl::transport::verbs
