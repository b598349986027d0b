// SPDX-License-Identifier: Apache-2.0

// Queue pairs of a link, over which its streams are cut, and the memory that they reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/mapping.h"
#include "csrc/transport/verbs/link_exchange.h"
#include "csrc/transport/verbs/queue_pair.h"

namespace pccl::transport::verbs {

/// Memory of this process that all devices of a link can reach.
class LinkMemory {
   public:
    /// Registers a mapping with each adapter.
    static Result<LinkMemory> create(Mapping mapping,
                                     std::span<const std::shared_ptr<Adapter>> adapters,
                                     Access access);

    [[nodiscard]] std::byte* data() const { return mapping_.memory().data(); }
    [[nodiscard]] std::uint32_t local_key(std::size_t device) const {
        return regions_[device]->lkey;
    }
    /// Returns the range for the peer.
    [[nodiscard]] PeerRange range() const;

   private:
    Mapping mapping_;                    // outlives its registrations
    std::vector<MemoryRegion> regions_;  // by device
};

/// One queue pair with the state of its send queue.
class Lane {
   public:
    Lane(std::unique_ptr<QueuePair> pair, std::size_t device)
        : pair_(std::move(pair)), device_(device) {}

    [[nodiscard]] QueuePair& pair() { return *pair_; }
    [[nodiscard]] const QueuePair& pair() const { return *pair_; }
    [[nodiscard]] std::size_t device() const { return device_; }
    /// Returns the index of the peer's device.
    [[nodiscard]] std::size_t peer_device() const { return peer_device_; }
    void match(const LaneEnd& peer) { peer_device_ = peer.device; }
    /// Returns the index of the peer's lane, as of LaneEnd.
    [[nodiscard]] std::uint8_t partner() const { return partner_; }
    void set_partner(std::size_t index) { partner_ = static_cast<std::uint8_t>(index); }

    /// Returns how many requests the send queue takes now.
    [[nodiscard]] int free_slots() const {
        return pair_->depths().sends - static_cast<int>(posted_ - completed_);
    }
    /// Posts an empty write with a completion behind requests that have none.
    Status fence();
    /// Returns whether all requests are complete; call fence() before.
    [[nodiscard]] bool is_drained() const { return marks_.empty(); }
    /// Returns the bytes that are posted and, as far as completions show, not delivered.
    [[nodiscard]] std::uint64_t load() const { return load_; }
    /// Prepares the next request: sets its id and whether it is signalled. There must be a free
    /// slot, and post() must follow.
    void prepare(ibv_send_wr& request, bool is_signalled);
    Status post(ibv_send_wr& first) { return pair_->post(first); }

    /// Takes completions until there is none: calls `received` for each receive request. Returns
    /// the error of the first failed request, with explain(); failure() has its completion.
    Status poll(const std::function<void(const WorkCompletion&)>& received);
    /// Returns whether as many completions have come as requests were posted, after the queue pair
    /// has failed: from the first failed request on, each has one.
    [[nodiscard]] bool is_flushed() const {
        return completed_ == posted_ || (failure_ && failure_->id + failed_ > posted_);
    }
    /// Returns the id of the last request that is complete, as are all before it.
    [[nodiscard]] std::uint64_t completed() const { return completed_; }
    [[nodiscard]] std::uint64_t posted() const { return posted_; }
    [[nodiscard]] const std::optional<WorkCompletion>& failure() const { return failure_; }
    /// Takes the lane out of use: its queue pair fails, so that no write of the peer arrives on it
    /// any more.
    void set_down(std::string reason);
    [[nodiscard]] bool is_up() const { return down_.empty(); }
    [[nodiscard]] const std::string& down_reason() const { return down_; }
    /// Takes the completions of a lane that is down, for 100 ms at most, until each of `receives`
    /// receive requests has one: calls `received` for those that received.
    void flush(int receives, const std::function<void(const WorkCompletion&)>& received);

   private:
    /// Requests between two that are signalled.
    static constexpr std::uint64_t kSignalEvery = 32;
    struct LoadMark {
        std::uint64_t id;
        std::uint64_t bytes;
    };
    void complete(std::uint64_t id);

    std::unique_ptr<QueuePair> pair_;
    std::size_t device_;
    std::size_t peer_device_ = 0;
    std::uint8_t partner_ = 0;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t load_ = 0;
    std::deque<LoadMark> marks_;             // one for each signalled request: bytes up to it
    std::uint64_t unmarked_ = 0;             // bytes since the last signalled request
    std::optional<WorkCompletion> failure_;  // the first
    std::uint64_t failed_ = 0;               // send requests that failed
    std::string down_;                       // why the lane is out of use; empty: it is in use
};

/// Queue pairs of one end.
class Lanes {
   public:
    /// Idle polls between two calls of check(), which makes system calls.
    static constexpr int kFreeLooks = 64;

    /// Creates `each` queue pairs on each port whose device has not failed, at most
    /// LinkEnd::kMostLanes together.
    static Result<Lanes> create(std::span<const std::shared_ptr<Port>> ports, int each,
                                const QueueDepths& depths);

    [[nodiscard]] std::span<const std::shared_ptr<Adapter>> adapters() const { return adapters_; }
    [[nodiscard]] std::vector<LaneEnd> ends() const;
    /// Chooses a lane for each of the peer's (pair_lanes()), and keeps no other one. Returns those
    /// of the peer, in the order of the lanes: a Connector connects pairs() to them.
    std::vector<LaneEnd> choose_partners(std::span<const LaneEnd> peer);
    /// Takes the choice of the peer, which has described its lanes: afterwards both ends have
    /// theirs in one order. kInvalidArgument for partners that cannot be.
    Status take_partners(std::span<const LaneEnd> peer);
    [[nodiscard]] std::vector<QueuePair*> pairs();
    /// Returns the ports of the lanes, each once.
    [[nodiscard]] std::vector<std::shared_ptr<Port>> ports() const;
    [[nodiscard]] std::size_t count() const { return lanes_.size(); }
    [[nodiscard]] Lane& operator[](std::size_t index) { return lanes_[index]; }
    [[nodiscard]] const Lane& operator[](std::size_t index) const { return lanes_[index]; }
    /// Waits until all posted requests are complete, or one has failed; a second at most.
    void drain();
    /// Returns the first lane in use from `index` on, and count() where there is none.
    [[nodiscard]] std::size_t next_up(std::size_t index = 0) const;
    /// Returns a lane in use whose device or port has failed, with the reason; count(): none. Makes
    /// system calls.
    [[nodiscard]] std::size_t find_failed(Status& reason);
    /// Describes the connection for the log: "mlx5_0:1 (RoCE v2, of 10.0.0.0/24) to 10.0.0.2".
    [[nodiscard]] std::string describe(std::span<const LaneEnd> peer) const;

   private:
    /// Keeps lanes of these indices alone, in their order, and matches them to the peer's.
    void keep(std::span<const std::size_t> indices, std::span<const LaneEnd> peer);

    std::vector<std::shared_ptr<Adapter>> adapters_;
    std::vector<Lane> lanes_;
};

}  // namespace pccl::transport::verbs
