#include "csrc/comm/operator.h"

namespace pccl::comm {

Result<runtime::Event> Operator::execute(std::span<const Block> inputs,
                                         std::span<const Block> outputs) const {
    return comm_->submit({.kind = spec_.kind,
                          .type = spec_.type,
                          .op = spec_.op,
                          .root = spec_.root,
                          .inputs = inputs,
                          .outputs = outputs},
                         spec_.timeout);
}

}  // namespace pccl::comm
