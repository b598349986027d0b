// A collective in flight: an executor at work, with what comes before and after it.
//
// Before: halves are widened to float32 where rounding at every hop would cost accuracy; an input
// that overlaps the output in a way no schedule expects is copied aside. After: results are
// narrowed, averages divided. Reused from call to call, so that a synchronous operation allocates
// nothing. The group's executors are its own from its first step to its end.
#pragma once

#include <string>
#include <vector>

#include "csrc/comm/executors.h"
#include "csrc/comm/selection/decision.h"
#include "csrc/runtime/operation.h"

namespace pccl::comm {

class CollectiveOperation final : public runtime::Operation {
   public:
    /// `collective` is copied; its blocks must stay valid until done. The header of `decision` has
    /// its number; `executors` are the group's.
    void prepare(const Collective& collective, Decision decision, Executors& executors);
    void begin(std::shared_ptr<runtime::ProgressEngine> engine, const runtime::Issue& issue) {
        runtime::Operation::begin(
            std::move(engine), issue,
            runtime::flight_recorder().begin(issue.flight_group, header(), issue.at));
        started_ = false;
    }

    /// Moves what can move; true when the operation is complete. An error ends it.
    Result<bool> advance(bool& moved);
    [[nodiscard]] bool is_flushed() const override;
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] AwaitedRanks awaited() const;
    [[nodiscard]] bool is_on_board() const { return decision_.is_on_board(); }
    /// Of the collectives of its group.
    [[nodiscard]] std::uint64_t sequence() const { return decision_.header.sequence; }
    [[nodiscard]] const abi::CollectiveHeader& header() const { return decision_.header; }

   private:
    [[nodiscard]] CollectiveKind kind() const { return static_cast<CollectiveKind>(header().kind); }
    void start();
    void start_on_links();
    void start_on_board();
    void widen_aside();
    void copy_inputs_aside();
    void finish_results();

    DataType type_ = DataType::kFloat32;
    ReduceOp op_ = ReduceOp::kSum;
    bool widened_ = false;  // over links
    bool started_ = false;
    Decision decision_;
    Executors* executors_ = nullptr;
    Operands operands_;             // the caller's, until it starts; as executed from then on
    std::vector<Block> narrowed_;   // the caller's outputs, where it is widened
    std::vector<std::byte> aside_;  // widened or copied blocks
};

}  // namespace pccl::comm
