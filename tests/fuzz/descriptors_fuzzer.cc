// SPDX-License-Identifier: Apache-2.0

// Descriptors of memory that peers offer, and the keys of shared memory in them, which a checksum
// would keep from most inputs.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/memory_key.h"

namespace {

using namespace pccl::transport;

void parse_memory(std::string_view bytes) {
    const auto memory = parse_memory_descriptor(bytes);
    if (memory.is_ok() && serialise(*memory) != bytes) std::abort();
}

void read_key(std::string_view bytes) {
    pccl::abi::MemoryDescriptor memory{};
    memory.nonce = 1;
    memory.bytes = bytes.size();
    if (!add_key(memory, TransportKind::kShm, bytes).is_ok()) return;
    static_cast<void>(shm::key_on_this_host(memory));
    const auto again = parse_memory_descriptor(serialise(memory));
    if (!again.is_ok() || !(*again == memory)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    parse_memory(bytes);
    read_key(bytes);
    return 0;
}
