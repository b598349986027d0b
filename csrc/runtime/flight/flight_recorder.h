// SPDX-License-Identifier: Apache-2.0

// Recorder of the last operations of this process, over all its groups, with their times and
// outcomes.
//
// It is always on, because a hang cannot be foreseen. It is a ring of fixed-size entries, which
// operations write with plain stores, without a lock and without formatting. Readers format the
// text.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/abi/wire.h"
#include "csrc/base/fork.h"
#include "csrc/runtime/flight/record_ring.h"

namespace pccl::runtime {

enum class FlightKind : std::uint32_t { kCollective, kSend, kReceive };

/// Fields of a message.
struct FlightMessage {
    std::int32_t peer = kNoRank;
    std::int32_t tag = 0;
    std::uint64_t bytes = 0;
};

using FlightTicket = std::uint64_t;  // of an operation: its number in this process, from 1

/// A kernel that waits for another rank.
struct FlightWait {
    FlightTicket ticket = 0;
    std::string operation{};
    Rank peer = kNoRank;
    Duration waited{};
};

/// Progress of a GPU on its launches, whose ends the host does not observe.
struct FlightProgress {
    std::vector<FlightWait> waits{};
    FlightTicket reached = 0;  // the collective that waits or has timed out; 0: none is known
    std::set<FlightTicket> captured{};  // into CUDA graphs, which may run them at any time
};

/// Launches of a group on its GPU that have succeeded, without those into CUDA graphs.
struct LaunchCounts {
    std::uint64_t calls = 0;     // collectives
    std::uint64_t bytes = 0;     // of the longer of each call's two buffers
    std::uint64_t messages = 0;  // sent or received
    std::uint64_t sent = 0;      // bytes
    std::uint64_t received = 0;  // bytes
    std::uint64_t captured =
        0;                 // collectives and messages in CUDA graphs, whose runs nobody counts
    Duration launching{};  // time of the host in launches
};

class FlightObserver {
   public:
    virtual ~FlightObserver() = default;
    [[nodiscard]] virtual LaunchCounts counts() const = 0;
    [[nodiscard]] virtual std::vector<FlightWait> waits() const = 0;
    [[nodiscard]] virtual FlightProgress progress() const = 0;
};

/// A group as it was when it was made.
struct FlightGroup {
    std::uint32_t id = 0;
    std::string name{};
    Rank rank = 0;
    int size = 1;
    std::vector<std::uint64_t> global_ranks{};
    bool is_on_gpus = false;
    std::weak_ptr<const FlightObserver> observer{};  // of a group on GPUs, while it lives
};

/// Copy of one operation's entry.
struct FlightEntry {
    FlightTicket ticket = 0;
    std::uint32_t group = 0;
    FlightKind kind = FlightKind::kCollective;
    std::uint32_t calls = 1;             // made together; the fields below are those of the first
    abi::CollectiveHeader collective{};  // if the kind is a collective
    FlightMessage message{};             // otherwise
    TimePoint issued{};
    TimePoint started{};   // launched, on a GPU; TimePoint{}: waits for operations before it
    TimePoint finished{};  // TimePoint{}: not finished
    StatusCode outcome = StatusCode::kOk;
    Rank blamed = kNoRank;
};

/// Process-wide recorder, which is never destroyed.
class PCCL_API FlightRecorder {
   public:
    static constexpr std::size_t kEntries = 2048;  // a power of two
    using Ticket = FlightTicket;                   // 0: none

    FlightRecorder() { hold_while_forking(mutex_); }
    FlightRecorder(const FlightRecorder&) = delete;
    FlightRecorder& operator=(const FlightRecorder&) = delete;
    ~FlightRecorder() = default;

    /// Adds a group and returns its id. The oldest group is dropped when 1024 younger ones exist.
    std::uint32_t add_group(FlightGroup group);
    Ticket begin(std::uint32_t group, const abi::CollectiveHeader& collective, TimePoint now,
                 std::size_t calls = 1);
    Ticket begin(std::uint32_t group, FlightKind kind, const FlightMessage& message, TimePoint now,
                 std::size_t calls = 1);
    void started(Ticket ticket, TimePoint now);
    void finished(Ticket ticket, const Status& outcome, TimePoint now);

    /// Returns the recorded entries, oldest first, without those that are being written.
    [[nodiscard]] std::vector<FlightEntry> entries() const;
    [[nodiscard]] std::optional<FlightEntry> find(Ticket ticket) const;
    [[nodiscard]] std::vector<FlightGroup> groups() const;
    /// Returns the waits of a living group on GPUs.
    [[nodiscard]] std::vector<FlightWait> waits(std::string_view group, Rank rank) const;
    /// Returns the last collectives of a group, at most `count`, oldest first.
    [[nodiscard]] std::vector<abi::CollectiveHeader> recent(std::uint32_t group,
                                                            std::size_t count) const;

   private:
    using Words = std::array<std::uint64_t, 5>;
    struct Fields {
        std::atomic<std::uint32_t> group{0};
        std::atomic<FlightKind> kind{FlightKind::kCollective};
        std::atomic<std::uint32_t> calls{1};
        std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words{};
        std::atomic<TimePoint> issued{};
        std::atomic<TimePoint> started{};
        std::atomic<TimePoint> finished{};
        std::atomic<StatusCode> outcome{StatusCode::kOk};
        std::atomic<Rank> blamed{kNoRank};
    };

    /// Description of an operation.
    struct Said {
        std::uint32_t group;
        FlightKind kind;
        std::size_t calls;
        Words words{};
    };
    Ticket write(const Said& content, TimePoint now);
    /// Returns null where that group is not on GPUs or has ended.
    [[nodiscard]] std::shared_ptr<const FlightObserver> observer_of(std::string_view group,
                                                                    Rank rank) const;
    static FlightEntry read(Ticket ticket, const Fields& fields);

    RecordRing<Fields, kEntries> ring_;
    mutable std::mutex mutex_;  // guards the members below
    std::uint32_t last_group_ = 0;
    std::deque<FlightGroup> groups_;
};

/// Returns the recorder of this process.
[[nodiscard]] PCCL_API FlightRecorder& flight_recorder();

/// Returns, for example, "all_reduce #7 (...)" or "send to rank 1 (tag 0, 64 bytes)".
[[nodiscard]] std::string describe(const FlightEntry& entry);

/// Returns a launch on a GPU without the way it runs: "all_reduce #7 (sum of 1024 float32) and 3
/// more".
[[nodiscard]] std::string describe_launch(const FlightEntry& entry);

}  // namespace pccl::runtime
