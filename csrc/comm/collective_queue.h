// The collectives of a group: one at a time, in the order of their calls. Used under the group's
// lock.
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
    /// `links` are the group's, and outlive it; its operations are recorded under `flight_group`.
    CollectiveQueue(LinkTable& links, std::uint32_t flight_group)
        : executors_{.over_links = LinkExecutor(links), .over_shm = {}},
          flight_group_(flight_group) {}
    /// To be called once where the group has a segment, which outlives it, too.
    void use(ShmSegment& segment) { executors_.over_shm.emplace(segment); }

    /// The next collective of the group; not in the queue yet.
    [[nodiscard]] std::shared_ptr<CollectiveOperation> prepare(const Collective& collective,
                                                               const Decision& decision);
    [[nodiscard]] Timeline& timeline() { return executors_.over_links.timeline(); }
    void push(std::shared_ptr<CollectiveOperation> operation) {
        collectives_.push_back(std::move(operation));
    }
    /// What a synchronous call is done with: the next one takes its memory over.
    void give_back(std::shared_ptr<CollectiveOperation> operation) {
        spare_ = std::move(operation);
    }

    [[nodiscard]] bool is_empty() const { return collectives_.empty(); }
    [[nodiscard]] std::size_t size() const { return collectives_.size(); }
    /// Of a queue that is not empty.
    [[nodiscard]] const CollectiveOperation& front() const { return *collectives_.front(); }
    /// Whether the deadline of the one at the front has passed.
    [[nodiscard]] bool is_past_deadline() const;
    /// Whom the one at the front waits for.
    [[nodiscard]] AwaitedRanks awaited() const;
    /// The header of the latest call; no magic: there was none.
    [[nodiscard]] const abi::CollectiveHeader& latest() const { return latest_; }
    /// In the headers of those that are prepared from now on.
    void set_generation(std::uint32_t generation) { generation_ = generation; }
    /// Calls so far. From any thread.
    [[nodiscard]] std::uint64_t sequence() const { return sequence_.load(); }

    /// Moves what can move and appends what ended and has callbacks, with its status set, to
    /// `ended`. An error is the group's end.
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
