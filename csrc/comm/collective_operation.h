// A collective in flight: an executor at work, with what comes before and after it.
//
// Before: what accumulates in a wider type (collective/arithmetic/accumulator.h) is widened aside;
// an input that overlaps the output in a way no schedule expects is copied aside. After: results
// are narrowed, averages divided. Reused from call to call, so that a synchronous operation
// allocates nothing. The group's executors are its own from its first step to its end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/collective/arithmetic/accumulator.h"
#include "csrc/comm/executors.h"
#include "csrc/comm/selection/decision.h"
#include "csrc/runtime/operation.h"

namespace pccl::comm {

class CollectiveOperation final : public runtime::Operation {
   public:
    /// `executors` are the group's, and outlive it; it is recorded under `flight_group`.
    CollectiveOperation(Executors& executors, std::uint32_t flight_group)
        : executors_(executors), flight_group_(flight_group) {}

    /// `collective` is copied; the memory of its blocks must stay valid until done. The header of
    /// `decision` has its number.
    void prepare(const Collective& collective, Decision decision);
    void begin(std::shared_ptr<runtime::ProgressEngine> engine, TimePoint now, Deadline deadline) {
        runtime::Operation::begin(std::move(engine), now, deadline,
                                  runtime::flight_recorder().begin(flight_group_, header(), now));
        started_ = false;
    }

    /// Moves what can move; true when the operation is complete. An error ends it.
    Result<bool> progress(bool& moved);
    [[nodiscard]] bool is_flushed() const override;
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] AwaitedRanks awaited() const;
    [[nodiscard]] bool is_on_shm() const { return decision_.is_on_shm(); }
    /// Of the collectives of its group.
    [[nodiscard]] std::uint64_t sequence() const { return decision_.header.sequence; }
    [[nodiscard]] const abi::CollectiveHeader& header() const { return decision_.header; }

   private:
    /// Over links alone.
    [[nodiscard]] bool is_widened() const { return accumulator_.is_wide(); }
    void start();
    void start_on_links();
    void start_on_shm();
    void widen_aside();
    void copy_inputs_aside();
    void put_output_aside();
    /// Whether it is a broadcast's root, in whose only memory a program would write.
    [[nodiscard]] bool would_write_root() const;
    void finish_results();

    Executors& executors_;
    const std::uint32_t flight_group_;
    Decision decision_;
    bool started_ = false;
    arithmetic::Accumulator accumulator_;  // over links, of what reduces
    Collective executed_;                  // of inputs_ and outputs_
    std::vector<Block> inputs_;            // the caller's, until it starts
    std::vector<Block> outputs_;
    std::vector<Block> narrowed_;   // the caller's outputs, where it is widened
    std::vector<std::byte> aside_;  // widened or copied blocks
};

}  // namespace pccl::comm
