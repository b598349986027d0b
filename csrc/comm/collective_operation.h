// A collective in flight: an execution, with what comes before and after it.
//
// Before: halves are widened to float32 where rounding at every hop would cost accuracy; an input
// that overlaps the output in a way no schedule expects is copied aside. After: results are
// narrowed, averages divided. Reused from call to call, so that a synchronous operation allocates
// nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/comm/board/board_execution.h"
#include "csrc/comm/links/execution.h"
#include "csrc/runtime/operation.h"

namespace pccl::comm {

/// What a group decided about a collective.
struct Decision {
    std::shared_ptr<const Plan> plan;  // null: over the board
    Cut cut;
    BoardPlan on_board;
    Board* board = nullptr;
};

struct Membership {
    Rank self = 0;
    int ranks = 1;
};

class CollectiveOperation final : public runtime::Operation {
   public:
    /// `collective` is copied; its blocks must stay valid until done.
    void prepare(const Collective& collective, Decision decision, abi::CollectiveHeader header,
                 Membership membership);
    void begin(std::shared_ptr<runtime::ProgressEngine> engine, const runtime::Issue& issue) {
        runtime::Operation::begin(std::move(engine), issue);
        started_ = false;
    }

    /// Moves what can move; true when the operation is complete. An error ends it.
    Result<bool> advance(LinkTable& links, bool& moved);
    [[nodiscard]] bool is_flushed() const override;
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] AwaitedRanks awaited() const;
    /// Of the collectives of its group.
    [[nodiscard]] std::uint64_t sequence() const { return header_.sequence; }
    [[nodiscard]] const abi::CollectiveHeader& header() const { return header_; }

   private:
    [[nodiscard]] bool is_on_board() const { return decision_.plan == nullptr; }
    void start();
    void start_on_links();
    void start_on_board();
    void copy_inputs_aside();
    void finish_results();

    DataType type_ = DataType::kFloat32;
    ReduceOp op_ = ReduceOp::kSum;
    Rank self_ = 0;
    int ranks_ = 1;
    bool reduces_ = false;
    bool widened_ = false;
    bool started_ = false;
    Decision decision_;
    abi::CollectiveHeader header_{};
    Operands operands_;          // as executed
    std::vector<Block> inputs_;  // the caller's
    std::vector<Block> outputs_;
    std::vector<std::byte> aside_;  // widened or copied blocks
    Execution execution_;
    BoardExecution board_execution_;
};

}  // namespace pccl::comm
