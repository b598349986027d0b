// SPDX-License-Identifier: Apache-2.0

// A collective bound to a communicator and its blocks: it is checked once and executed repeatedly.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/comm/communicator.h"

namespace pccl::comm {

/// Implementation of pccl::Operator.
class PCCL_API OperatorImpl {
   public:
    /// Copies the blocks; their memory must stay valid while the operator is in use. Errors are
    /// those of Communicator::check_call().
    static Result<OperatorImpl> create(std::shared_ptr<CommunicatorImpl> comm,
                                       const Collective& collective);

    /// See <pccl/operator.h>.
    static Result<OperatorImpl> load(std::shared_ptr<CommunicatorImpl> comm,
                                     const std::string& path, Collective call,
                                     const std::optional<std::string>& sizes = {});

    /// Returns the collective, which refers to memory of this operator.
    [[nodiscard]] Collective collective() const;
    /// Runs it on the calling thread. Errors are those of Communicator::run().
    [[nodiscard]] Status run(OptionalTimeout timeout = {}) const {
        return comm_->run(collective(), timeout);
    }
    /// Starts it. Errors are those of Communicator::submit().
    [[nodiscard]] Result<Event> execute(OptionalTimeout timeout = {}) const {
        return comm_->submit(collective(), timeout);
    }

   private:
    OperatorImpl(std::shared_ptr<CommunicatorImpl> comm, const Collective& collective);

    std::shared_ptr<CommunicatorImpl> comm_;
    CollectiveKind kind_;
    DataType type_;
    ReduceOp op_;
    Rank root_;
    bool is_even_;
    std::vector<Block> inputs_;
    std::vector<Block> outputs_;
    std::string algorithm_;
};

}  // namespace pccl::comm
