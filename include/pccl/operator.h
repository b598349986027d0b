// SPDX-License-Identifier: Apache-2.0

// A collective bound to a communicator and its blocks: it is checked once and executed repeatedly.
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

#include <pccl/collective.h>
#include <pccl/communicator.h>
#include <pccl/export.h>
#include <pccl/status.h>

namespace pccl {

namespace comm {
class OperatorImpl;
}

/// Persistent collective, as MPI_Allreduce_init creates it. Executions count as collectives of the
/// group: their order must be equal on all ranks. Cheap to copy, thread-safe. It keeps the group.
class PCCL_API Operator {
   public:
    /// Copies the blocks; their memory must stay valid while the operator is in use. `comm` is not
    /// null. Errors are those of Communicator::check_call().
    static Result<Operator> create(const std::shared_ptr<Communicator>& comm,
                                   const Collective& collective);
    /// Loads the capsule of a file for `sizes`, as Communicator::load() does: all ranks must call
    /// it. Returns an operator for its collective and root, on the blocks, type and reduction of
    /// `call`, that uses the capsule for any size. Errors are those of load() and of create();
    /// after an error of create() the capsule stays loaded.
    static Result<Operator> load(const std::shared_ptr<Communicator>& comm, const std::string& path,
                                 const Collective& call,
                                 const std::optional<std::string>& sizes = {});

    /// Returns the collective, which refers to memory of this operator.
    [[nodiscard]] Collective collective() const;
    /// Runs it on the calling thread. Errors are those of Communicator::run().
    [[nodiscard]] Status run(OptionalTimeout timeout = {}) const;
    /// Starts it. Errors are those of Communicator::submit().
    [[nodiscard]] Result<Event> execute(OptionalTimeout timeout = {}) const;

   private:
    explicit Operator(comm::OperatorImpl bound);

    std::shared_ptr<const comm::OperatorImpl> bound_;
};

}  // namespace pccl
