// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/wire.h"

namespace pccl::transport::tcp {
Result<SocketPurpose> SocketPurpose::decode(const Purpose& bytes) {
    const auto purpose = value_in<SocketPurpose>(bytes);
    if (purpose.data_sockets >= 1 && purpose.data_sockets <= kMostDataSockets &&
        purpose.index < purpose.sockets() && purpose.block_bytes >= kLeastBlock &&
        purpose.block_bytes <= kMostBlock) {
        return purpose;
    }
    return Status::invalid_argument("a proven peer describes a socket that cannot be");
}

Purpose SocketPurpose::encode() const { return purpose_of(*this); }

}  // namespace pccl::transport::tcp
