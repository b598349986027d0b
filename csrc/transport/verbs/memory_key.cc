// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/memory_key.h"

#include <cstring>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/transport/memory_descriptor.h"

namespace pccl::transport::verbs {

namespace {

/// Returns a value that connects a key with the registration that it was made for.
std::uint64_t check_value(const abi::MemoryDescriptor& memory, const RemoteKey& key) {
    ByteWriter out;
    out.u64(memory.id);
    out.u64(memory.nonce);
    out.u64(memory.bytes);
    out.u64(key.address);
    for (const std::uint32_t device : key.devices) out.u32(device);
    const sys::Digest digest = sys::sha256(out.take());
    std::uint64_t value = 0;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
}

}  // namespace

Status add_remote_key(abi::MemoryDescriptor& memory, const RemoteKey& key) {
    ByteWriter out;
    out.u64(key.address);
    out.u64(check_value(memory, key));
    for (const std::uint32_t device : key.devices) out.u32(device);
    return add_key(memory, TransportKind::kVerbs, out.take());
}

Result<RemoteKey> remote_key_of(const abi::MemoryDescriptor& memory) {
    const auto bytes = key_of(memory, TransportKind::kVerbs);
    if (!bytes)
        return Status::unsupported("its owner has not registered the memory with an RDMA device");
    ByteReader in(*bytes);
    RemoteKey key;
    std::uint64_t check = 0;
    PCCL_TRY(in.u64(key.address));
    PCCL_TRY(in.u64(check));
    while (in.remaining() > 0 && key.devices.size() < RemoteKey::kMostDevices)
        PCCL_TRY(in.u32(key.devices.emplace_back()));
    PCCL_TRY(in.finish());
    if (key.devices.empty() || key.address + memory.bytes < key.address)
        return Status::invalid_argument(
            concat("an RDMA key of ", key.devices.size(), " devices at address ", key.address));
    if (check == check_value(memory, key)) return key;
    return Status::unavailable("the memory's RDMA key belongs to another registration");
}

}  // namespace pccl::transport::verbs
