// SPDX-License-Identifier: Apache-2.0

// Reader of the operations of a plan's thread blocks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/capsule/mscclpp/block_tables.h"
#include "csrc/capsule/mscclpp/plan.h"
#include "csrc/capsule/mscclpp/plan_value.h"

namespace pccl::capsule::mscclpp {

/// Reader of the operations of one plan, thread block by thread block. Its limits apply to the
/// whole plan.
class OperationReader {
   public:
    /// Reads the operations of a thread block of `gpu`, which has `tables`. Expands loops as one
    /// iteration. Errors contain line and operation.
    [[nodiscard]] Result<ThreadBlock> read_block(const PlanValue& block, Rank gpu,
                                                 std::size_t number, const GpuTables& tables);

   private:
    /// Context of an operation: its thread block, and its loop, if any.
    struct Within {
        Rank gpu = 0;
        std::size_t block = 0;
        const BlockTables& tables;
        std::string prefix{};  // of numbers: "5."
        int loop_chunks = 0;   // chunks over which a loop runs
        [[nodiscard]] bool is_loop() const { return !prefix.empty(); }
    };

    [[nodiscard]] Status read_all(const PlanValue& of, const Within& within, ThreadBlock& made);
    [[nodiscard]] Status read_loop(const PlanValue& op, const Within& within,
                                   const std::string& number, ThreadBlock& made);
    [[nodiscard]] Result<PlanOperation> read(const PlanValue& op, const Within& within,
                                             const Instruction& instruction);
    [[nodiscard]] Status read_moved(const PlanValue& op, const Within& within,
                                    const Instruction& instruction, PlanOperation& made);
    [[nodiscard]] Status read_chunks(const PlanValue& op, const char* key, const Within& within,
                                     ChannelType type, std::vector<Chunks>& chunks);

    long long counted_ = 0;
    std::size_t operations_ = 0;
};

}  // namespace pccl::capsule::mscclpp
