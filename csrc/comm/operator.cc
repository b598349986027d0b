// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/operator.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::comm {

Result<OperatorImpl> OperatorImpl::create(std::shared_ptr<CommunicatorImpl> comm,
                                          const Collective& collective) {
    PCCL_TRY(comm->check_call(collective));
    return OperatorImpl(std::move(comm), collective);
}

Result<OperatorImpl> OperatorImpl::load(std::shared_ptr<CommunicatorImpl> comm,
                                        const std::string& path, Collective call,
                                        const std::optional<std::string>& sizes) {
    PCCL_ASSIGN_OR_RETURN(const capsule::VerifiedCapsule capsule,
                          comm->load(capsule::CapsuleFile::read(path), sizes));
    if (capsule.switches_phases())
        return Status::unsupported(
            concat("capsule ", capsule.description().name,
                   " switches phases of the network: it is loaded, and run in its parts"));
    call.kind = capsule.schedule().shape.kind;
    call.root = capsule.schedule().shape.root;
    call.algorithm = capsule.description().name;
    return create(std::move(comm), call);
}

OperatorImpl::OperatorImpl(std::shared_ptr<CommunicatorImpl> comm, const Collective& collective)
    : comm_(std::move(comm)),
      kind_(collective.kind),
      type_(collective.type),
      op_(collective.op),
      root_(collective.root),
      is_even_(collective.is_even),
      inputs_(collective.inputs.begin(), collective.inputs.end()),
      outputs_(collective.outputs.begin(), collective.outputs.end()),
      algorithm_(collective.algorithm) {}

Collective OperatorImpl::collective() const {
    return {.kind = kind_,
            .type = type_,
            .op = op_,
            .root = root_,
            .inputs = inputs_,
            .outputs = outputs_,
            .is_even = is_even_,
            .algorithm = algorithm_};
}

}  // namespace pccl::comm
