// A collective bound to a communicator and its blocks: checked once, executed again and again.
//
//     PCCL_ASSIGN_OR_RETURN(
//         const Operator sum, Operator::create(comm, {.inputs = blocks, .outputs = blocks}));
//     PCCL_TRY(sum.run());
//     PCCL_ASSIGN_OR_RETURN(const Event event, sum.execute());
//     ... event.flush(), event.wait(), event.record() ...
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/comm/communicator.h"

namespace pccl::comm {

/// MPI's persistent collectives (MPI_Allreduce_init) are the same. Executions are collectives as
/// any other: in the order of calls, which must be the same on all ranks.
class PCCL_API Operator {
   public:
    /// Blocks are copied; their memory must stay where it is while the operator is executed. Errors
    /// are what Communicator::check_call() says.
    static Result<Operator> create(std::shared_ptr<Communicator> comm,
                                   const Collective& collective);

    /// Loads the capsule of a file for `sizes`, as Communicator::load() does: all ranks call it.
    /// Gives its collective, from its root and by it whatever the size, on the blocks, type and
    /// reduction of `call`. Errors as those of load(), and of create(), before which it stays
    /// loaded.
    static Result<Operator> load(std::shared_ptr<Communicator> comm, const std::string& path,
                                 Collective call, const std::optional<std::string>& sizes = {});

    /// What is executed; valid as long as the operator.
    [[nodiscard]] Collective collective() const;
    /// On this thread, to its end. Errors as those of Communicator::run().
    [[nodiscard]] Status run(OptionalTimeout timeout = {}) const {
        return comm_->run(collective(), timeout);
    }
    /// Starts it. Errors as those of Communicator::submit().
    [[nodiscard]] Result<runtime::Event> execute(OptionalTimeout timeout = {}) const {
        return comm_->submit(collective(), timeout);
    }

   private:
    Operator(std::shared_ptr<Communicator> comm, const Collective& collective);

    std::shared_ptr<Communicator> comm_;
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
