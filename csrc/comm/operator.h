// One collective bound to a communicator: made once, executed again and again.
//
//     Operator sum(comm, {.kind = CollectiveKind::kAllReduce, .type = DataType::kFloat32});
//     PCCL_ASSIGN_OR_RETURN(Event event, sum.execute(inputs, outputs));
//     ... event.flush(), event.wait(), event.record() ...
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "csrc/comm/communicator.h"

namespace pccl::comm {

struct OperatorSpec {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Rank root = 0;
    std::optional<std::chrono::milliseconds> timeout{};  // the communicator's when empty
};

class PCCL_API Operator {
   public:
    Operator(std::shared_ptr<Communicator> comm, OperatorSpec spec)
        : comm_(std::move(comm)), spec_(spec) {}

    [[nodiscard]] const OperatorSpec& spec() const { return spec_; }
    /// Starts the collective on these blocks (collective.h says how many, and how long they must
    /// live).
    [[nodiscard]] Result<runtime::Event> execute(std::span<const Block> inputs,
                                                 std::span<const Block> outputs) const;
    /// In place: the same blocks on both sides.
    [[nodiscard]] Result<runtime::Event> execute(std::span<const Block> blocks) const {
        return execute(blocks, blocks);
    }

   private:
    std::shared_ptr<Communicator> comm_;
    OperatorSpec spec_;
};

}  // namespace pccl::comm
