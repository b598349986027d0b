// SPDX-License-Identifier: Apache-2.0

// Queue of the collectives of a group: they run one at a time, in the order of their calls. The
// group's lock guards it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/collective/awaited.h"
#include "csrc/collective/collective.h"
#include "csrc/comm/collective_operation.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/comm/selection/decision.h"
#include "csrc/runtime/ended_operations.h"

namespace pccl::comm {

class CollectiveQueue {
   public:
    /// Uses the `links` of the group, which must outlive it. The flight recorder lists its
    /// operations under `flight_group`.
    CollectiveQueue(LinkTable& links, std::uint32_t flight_group)
        : executors_{.over_links = LinkExecutor(links), .over_shm = {}},
          flight_group_(flight_group) {}
    /// Sets the group's shared-memory segment, which must outlive the queue. Call it at most once.
    void use(ShmSegment& segment) { executors_.over_shm.emplace(segment); }

    /// Returns the next collective of the group, which is not in the queue yet.
    [[nodiscard]] std::shared_ptr<CollectiveOperation> prepare(const Collective& collective,
                                                               const Decision& decision);
    [[nodiscard]] Timeline& timeline() { return executors_.over_links.timeline(); }
    void push(std::shared_ptr<CollectiveOperation> operation) {
        collectives_.push_back(std::move(operation));
    }
    /// Takes back an operation after a synchronous call; the next call reuses its memory.
    void give_back(std::shared_ptr<CollectiveOperation> operation) {
        spare_ = std::move(operation);
    }

    [[nodiscard]] bool is_empty() const { return collectives_.empty(); }
    [[nodiscard]] std::size_t size() const { return collectives_.size(); }
    /// Returns the first operation. The queue must not be empty.
    [[nodiscard]] const CollectiveOperation& front() const { return *collectives_.front(); }
    /// Returns whether the deadline of the first operation has passed.
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
    std::shared_ptr<CollectiveOperation> take_spare();
    void end_front(const Status& status, runtime::EndedOperations& ended);

    std::atomic<std::uint64_t> sequence_{0};
    std::uint32_t generation_ = 0;
    abi::CollectiveHeader latest_{};
    std::deque<std::shared_ptr<CollectiveOperation>> collectives_;
    std::shared_ptr<CollectiveOperation> spare_;
    Executors executors_;
    const std::uint32_t flight_group_;
};

}  // namespace pccl::comm
