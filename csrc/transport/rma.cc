#include "csrc/transport/rma.h"

#include <array>
#include <bit>

#include "csrc/sys/crypto/hmac.h"

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

Result<std::unique_ptr<Registration>> RmaTransport::add(const Memory& memory) {
    PCCL_ASSIGN_OR_RETURN(const MemoryIdentity identity, fresh_identity());
    return add(memory, identity);
}

}  // namespace pccl::transport
