// SPDX-License-Identifier: Apache-2.0

// A collective in flight: an executor with the work before and after it.
//
// Before: inputs that accumulate in a wider type (collective/arithmetic/accumulator.h) are widened
// into a scratch buffer; an input that overlaps the output in a way that no schedule expects is
// copied. After: results are narrowed, and averages are divided. Operations are reused from call to
// call, so that a synchronous operation allocates nothing. An operation has exclusive use of the
// group's executors from its first step to its end.
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

}  // namespace pccl::comm
