// SPDX-License-Identifier: Apache-2.0

// Collectives of a group in flight: the queue in which they run one at a time, in the order of
// their calls, and each operation, an executor with the work before and after it.
//
// Before: inputs that accumulate in a wider type (collective/arithmetic/accumulator.h) are widened
// into a scratch buffer; an input that overlaps the output in a way that no schedule expects is
// copied. After: results are narrowed, and averages are divided. Operations are reused from call to
// call, so that a synchronous operation allocates nothing. An operation has exclusive use of the
// group's executors from its first step to its end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/collective/arithmetic/accumulator.h"
#include "csrc/collective/awaited.h"
#include "csrc/collective/collective.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/comm/links/strands.h"
#include "csrc/comm/selection/decision.h"
#include "csrc/comm/shm/shm_executor.h"
#include "csrc/runtime/ended_operations.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/runtime/operation.h"

namespace pccl::comm {

/// Executors that run the collectives of a group, one at a time. They are created once, with the
/// memory that they need.
struct Executors {
    Strands over_links;
    std::optional<ShmExecutor> over_shm;  // for a group that has a segment
};

class CollectiveOperation final : public runtime::Operation {
   public:
    /// Uses the `executors` of the group, which must outlive it. The flight recorder lists it under
    /// `flight_group`.
    CollectiveOperation(Executors& executors, std::uint32_t flight_group)
        : executors_(executors), flight_group_(flight_group) {}

    /// Copies `collective`; the memory of its blocks must stay valid until the operation is done.
    /// The header of `decision` contains the sequence number.
    void prepare(const Collective& collective, Decision decision);
    void begin(std::shared_ptr<runtime::ProgressEngine> engine, TimePoint now, Deadline deadline) {
        runtime::Operation::begin(std::move(engine), now, deadline,
                                  runtime::flight_recorder().begin(flight_group_, header(), now));
        started_ = false;
    }

    /// Makes progress without blocking. Returns true when the operation is complete. An error ends
    /// the operation.
    Result<bool> progress(bool& moved);
    [[nodiscard]] bool is_flushed() const override;
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] AwaitedRanks awaited() const;
    [[nodiscard]] bool is_on_shm() const { return decision_.is_on_shm(); }
    /// Returns the number of this call among the collectives of its group.
    [[nodiscard]] std::uint64_t sequence() const { return decision_.header.sequence; }
    [[nodiscard]] const abi::CollectiveHeader& header() const { return decision_.header; }
    /// Returns its counters, once it has ended.
    [[nodiscard]] runtime::GroupUsage::Call usage() const;

   private:
    /// Returns whether the inputs are widened; only collectives over links are.
    [[nodiscard]] bool is_widened() const { return accumulator_.is_wide(); }
    void start();
    void start_on_links();
    void start_on_shm();
    void widen_aside();
    void copy_inputs_aside();
    void put_output_aside();
    /// Returns whether this rank is the root of a broadcast and its program would write into the
    /// root's only buffer.
    [[nodiscard]] bool would_write_root() const;
    void finish_results();

    Executors& executors_;
    const std::uint32_t flight_group_;
    Decision decision_;
    bool started_ = false;
    arithmetic::Accumulator accumulator_;  // for reductions over links
    Collective executed_;                  // refers to inputs_ and outputs_
    std::vector<Block> inputs_;            // the caller's blocks, until the operation starts
    std::vector<Block> outputs_;
    std::vector<Block> narrowed_;   // the caller's outputs, when the operation is widened
    std::vector<std::byte> aside_;  // scratch for widened or copied blocks
};

/// The group's lock guards it.
class CollectiveQueue {
   public:
    /// Uses the `links` of the group, and counts its collectives in `usage`; both must outlive it.
    /// The flight recorder lists its operations under `flight_group`.
    CollectiveQueue(LinkTable& links, std::uint32_t flight_group, runtime::GroupUsage& usage)
        : usage_(usage),
          executors_{.over_links = Strands(links), .over_shm = {}},
          flight_group_(flight_group) {}
    /// Sets the group's shared-memory segment, which must outlive the queue. Call it at most once.
    void use(ShmSegment& segment, int helpers) { executors_.over_shm.emplace(segment, helpers); }
    /// Lets up to `helpers` threads take part in long calls over links.
    void use_helpers(int helpers) {
        executors_.over_links.use_helpers(helpers, sys::usable_cores());
    }

    /// Returns the next collective of the group, which is not in the queue yet.
    [[nodiscard]] std::shared_ptr<CollectiveOperation> prepare(const Collective& collective,
                                                               const Decision& decision);
    [[nodiscard]] Timeline& timeline() { return executors_.over_links.timeline(); }
    void push(std::shared_ptr<CollectiveOperation> operation);
    /// Ends an operation that has succeeded outside of the queue, and takes it back.
    void end_unqueued(std::shared_ptr<CollectiveOperation> operation);
    /// Takes back an operation after a synchronous call; the next call reuses its memory.
    void give_back(std::shared_ptr<CollectiveOperation> operation) {
        spare_ = std::move(operation);
    }

    [[nodiscard]] bool is_empty() const { return collectives_.empty(); }
    [[nodiscard]] std::size_t size() const { return collectives_.size(); }
    /// Returns the first operation. The queue must not be empty.
    [[nodiscard]] const CollectiveOperation& front() const {
        return *collectives_.front().operation;
    }
    /// Returns the earliest deadline of all operations: none ends before those ahead of it. The
    /// queue must not be empty.
    [[nodiscard]] Deadline deadline() const { return collectives_.front().deadline; }
    /// Returns whether the deadline of an operation has passed.
    [[nodiscard]] bool is_past_deadline() const;
    /// Returns the ranks that the first operation waits for.
    [[nodiscard]] AwaitedRanks awaited() const;
    /// Returns the header of the latest call. Its magic is 0 before the first call.
    [[nodiscard]] const abi::CollectiveHeader& latest() const { return latest_; }
    /// Sets the generation in the headers of operations that are prepared from now on.
    void set_generation(std::uint32_t generation) { generation_ = generation; }
    /// Returns the number of calls so far. Thread-safe.
    [[nodiscard]] std::uint64_t sequence() const { return sequence_.load(); }

    /// Makes progress without blocking. Appends operations that have ended and have callbacks to
    /// `ended`, with their status set. An error ends the group.
    Status progress(bool& moved, runtime::EndedOperations& ended);
    /// Ends every collective with `reason`.
    void fail_all(const Status& reason, runtime::EndedOperations& ended);

   private:
    struct Queued {
        std::shared_ptr<CollectiveOperation> operation;
        Deadline deadline;  // the earliest of this operation and those behind it
    };

    std::shared_ptr<CollectiveOperation> take_spare();
    void end_front(const Status& status, runtime::EndedOperations& ended);

    std::atomic<std::uint64_t> sequence_{0};
    std::uint32_t generation_ = 0;
    abi::CollectiveHeader latest_{};
    std::deque<Queued> collectives_;
    std::shared_ptr<CollectiveOperation> spare_;
    runtime::GroupUsage& usage_;
    Executors executors_;
    const std::uint32_t flight_group_;
};

}  // namespace pccl::comm
