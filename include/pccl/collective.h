// SPDX-License-Identifier: Apache-2.0

// Arguments of collectives and messages, and the handle of one in flight.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/types.h>

namespace pccl::runtime {
class Operation;
}

namespace pccl {

/// Memory of one block of a buffer: of the host for a Communicator, of a GPU for a DeviceGroup.
struct Block {
    std::byte* data = nullptr;  // aligned as its elements require
    std::size_t count = 0;      // elements
    /// Compares addresses and lengths, not the elements.
    auto operator<=>(const Block&) const = default;
};

/// A collective call. Sides with one block for each rank have n blocks in the order of the ranks
/// (the input of reduce_scatter, scatter and all_to_all; the output of all_gather, gather and
/// all_to_all), all other sides have 1. Blocks may lie anywhere and may differ in count (the "v"
/// variants) if every rank that sends or receives a block passes one count for it: all_gather's
/// output block r and reduce_scatter's input block r have one count on all ranks; all_to_all's
/// output block r here is input block `this rank` there. A root-only buffer is empty on the other
/// ranks. The spans are read during the call only; the memory must stay valid until the operation
/// is done.
struct Collective {
    CollectiveKind kind = CollectiveKind::kAllReduce;  // equal on all ranks, as `type` to `root`
    DataType type = DataType::kFloat32;                // of all elements
    ReduceOp op = ReduceOp::kSum;                      // of reductions
    Rank root = 0;                                     // of rooted collectives (is_rooted())
    std::span<const Block> inputs{};  // read only, unless the same memory as the output
    /// On the root of a broadcast it may be the input's memory, which is then read only, too.
    std::span<const Block> outputs{};
    bool is_barrier = false;  // an all_reduce without user data
    /// For an all_to_all: all blocks of all ranks have one count. If false, only pairs of ranks
    /// have the counts of their blocks.
    bool is_even = false;
    /// Digest of the elements of the caller's output that share memory, equal on ranks with equal
    /// sharing; 0: none do. The outputs here do not overlap; ranks whose digests differ get an
    /// error.
    std::uint64_t overlap = 0;
    /// Whether the caller's buffers are invalid and placeholders are passed instead: ranks that
    /// differ in this get an error instead of waiting for a rank that raised one.
    bool is_refused = false;
    /// Algorithm for this call alone, equal on all ranks; read during the call. Empty: the group
    /// chooses.
    std::string_view algorithm{};
};

/// Default timeout of a group's operations.
inline constexpr std::chrono::minutes kDefaultTimeout{30};

/// Timeout of an operation; empty: the group's timeout.
using OptionalTimeout = std::optional<std::chrono::milliseconds>;

/// Check whether a waiting thread should stop: an error stops the wait. Waiting threads call it
/// from time to time, with no lock held.
using InterruptCheck = std::function<Status()>;

/// Stands for a message from any rank.
inline constexpr Rank kAnySource = -1;

/// Options of a message between two ranks.
struct MessageOptions {
    OptionalTimeout timeout{};       // empty: the group's
    std::optional<DataType> type{};  // of the elements; checked if both sides set it
    /// The caller waits for this message before anything else. A message to its own rank whose
    /// matching operation is not submitted is then kInvalidArgument.
    bool is_awaited = false;
};

/// Options of the communicator that the remaining ranks of another make.
struct ShrinkOptions {
    std::string name = {};         // empty: "<name>:shrunk"
    OptionalTimeout timeout = {};  // for operations; empty: as before
    /// Minimum number of remaining ranks; empty: more than half, or half with rank 0.
    std::optional<int> least = {};
};

/// Points in time of an operation, as Event::record() returns them.
struct Timing {
    TimePoint issued;    // the call
    TimePoint started;   // the first progress
    TimePoint finished;  // TimePoint{} while it runs
};

/// Handle of an operation in flight. Copyable; all copies refer to one operation, which may outlive
/// its communicator's handle. Thread-safe.
class PCCL_API Event {
   public:
    /// Makes a handle of no operation, for assignment only.
    Event() = default;
    /// Makes the handle of an operation, for the library.
    explicit Event(std::shared_ptr<runtime::Operation> operation);

    /// Returns whether the operation has ended, with or without success.
    [[nodiscard]] bool is_done() const;
    /// Waits until this rank's links have accepted all data that it sends. The deadline of the
    /// operation itself still applies.
    Status flush() const;
    /// Makes progress until the operation is done, and returns its outcome. Returns kTimeout after
    /// `deadline`; the operation continues then.
    [[nodiscard]] Status wait(Deadline deadline = Deadline::never()) const;
    /// Returns the outcome; ok while the operation runs.
    [[nodiscard]] Status status() const;
    /// Returns the times of the operation so far.
    [[nodiscard]] Timing record() const;
    /// Returns the sender, for receives; kNoRank until done.
    [[nodiscard]] Rank source() const;
    /// Calls `callback` once the operation is done: immediately on this thread if it is done
    /// already, otherwise on the thread that finishes it. No lock of the library is held.
    void on_done(std::function<void(const Status&)> callback) const;

   private:
    std::shared_ptr<runtime::Operation> operation_;
};

}  // namespace pccl
