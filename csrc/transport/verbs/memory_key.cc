// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/memory_key.h"

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/memory_descriptor.h"

namespace pccl::transport::verbs {

Status add_remote_key(abi::MemoryDescriptor& memory, const RemoteKey& key) {
    ByteWriter out;
    out.u64(key.address);
    for (const std::uint32_t device : key.devices) out.u32(device);
    return add_key(memory, TransportKind::kVerbs, out.take());
}

Result<RemoteKey> remote_key_of(const abi::MemoryDescriptor& memory) {
    const auto bytes = key_of(memory, TransportKind::kVerbs);
    if (!bytes)
        return Status::unsupported("its owner has not registered the memory with an RDMA device");
    ByteReader in(*bytes);
    RemoteKey key;
    PCCL_TRY(in.u64(key.address));
    while (in.remaining() > 0 && key.devices.size() < RemoteKey::kMostDevices)
        PCCL_TRY(in.u32(key.devices.emplace_back()));
    PCCL_TRY(in.finish());
    if (key.devices.empty() || key.address + memory.bytes < key.address)
        return Status::invalid_argument(
            concat("an RDMA key of ", key.devices.size(), " devices at address ", key.address));
    return key;
}

}  // namespace pccl::transport::verbs
