#include "csrc/comm/operator.h"

#include <utility>

namespace pccl::comm {

Result<Operator> Operator::create(std::shared_ptr<Communicator> comm,
                                  const Collective& collective) {
    PCCL_TRY(comm->check_call(collective));
    return Operator(std::move(comm), collective);
}

Operator::Operator(std::shared_ptr<Communicator> comm, const Collective& collective)
    : comm_(std::move(comm)),
      kind_(collective.kind),
      type_(collective.type),
      op_(collective.op),
      root_(collective.root),
      inputs_(collective.inputs.begin(), collective.inputs.end()),
      outputs_(collective.outputs.begin(), collective.outputs.end()),
      algorithm_(collective.algorithm) {}

Collective Operator::collective() const {
    return {.kind = kind_,
            .type = type_,
            .op = op_,
            .root = root_,
            .inputs = inputs_,
            .outputs = outputs_,
            .algorithm = algorithm_};
}

}  // namespace pccl::comm
