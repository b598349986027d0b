// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/operator.h"

#include <utility>

#include <pccl/operator.h>
#include "csrc/comm/communicator.h"

namespace pccl {

Operator::Operator(comm::OperatorImpl bound)
    : bound_(std::make_shared<const comm::OperatorImpl>(std::move(bound))) {}

Result<Operator> Operator::create(const std::shared_ptr<Communicator>& comm,
                                  const Collective& collective) {
    PCCL_ASSIGN_OR_RETURN(auto bound, comm::OperatorImpl::create(comm->group_, collective));
    return Operator(std::move(bound));
}

Result<Operator> Operator::load(const std::shared_ptr<Communicator>& comm, const std::string& path,
                                const Collective& call, const std::optional<std::string>& sizes) {
    PCCL_ASSIGN_OR_RETURN(auto bound, comm::OperatorImpl::load(comm->group_, path, call, sizes));
    return Operator(std::move(bound));
}

Collective Operator::collective() const { return bound_->collective(); }

Status Operator::run(OptionalTimeout timeout) const { return bound_->run(timeout); }

Result<Event> Operator::execute(OptionalTimeout timeout) const { return bound_->execute(timeout); }

}  // namespace pccl
