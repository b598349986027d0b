// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma.h"

#include <algorithm>
#include <array>
#include <bit>

#include "csrc/sys/crypto/sha256.h"

namespace pccl::transport {

Result<MemoryIdentity> fresh_identity() {
    std::array<std::uint8_t, sizeof(MemoryIdentity)> random;
    PCCL_TRY(sys::fill_random(random));
    auto identity = std::bit_cast<MemoryIdentity>(random);
    identity.nonce |= 1;
    return identity;
}

Status check_memory(const Memory& memory, const MemoryIdentity& identity) {
    if (memory.data == nullptr || memory.bytes == 0)
        return Status::invalid_argument("there is no memory of 0 bytes to register");
    if (identity.nonce == 0) return Status::invalid_argument("a registration's nonce is never 0");
    return Status::ok();
}

abi::MemoryDescriptor descriptor_of(const Memory& memory, const MemoryIdentity& identity) {
    abi::MemoryDescriptor descriptor{};
    descriptor.id = identity.id;
    descriptor.nonce = identity.nonce;
    descriptor.bytes = memory.bytes;
    descriptor.kind = memory.kind;
    return descriptor;
}

Result<std::size_t> RmaLink::post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) {
    std::array<RmaPiece, 128> pieces;
    const auto listed = std::span(pieces).first(std::min<std::uint64_t>(run.count, pieces.size()));
    RmaPiece next = run.first;
    for (RmaPiece& piece : listed) {
        piece = next;
        next.at += run.stride_here;
        next.there += run.stride_there;
    }
    return post(op, listed, ticket);
}

Status RmaLink::read_in_order(std::span<const RmaPiece>, std::uint64_t, const GpuCallerStream&) {
    return Status::unsupported("bytes pass through memory of the host");
}

Result<std::unique_ptr<Registration>> RmaTransport::add(const Memory& memory) {
    PCCL_ASSIGN_OR_RETURN(const MemoryIdentity identity, fresh_identity());
    return add(memory, identity);
}

}  // namespace pccl::transport
