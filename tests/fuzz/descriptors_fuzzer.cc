// Descriptors of memory that peers offer.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "csrc/transport/registered_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using pccl::transport::RegisteredMemory;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto memory = transport::RegisteredMemory::deserialise(bytes);
    if (!memory.is_ok()) return 0;
    const auto again = transport::RegisteredMemory::deserialise(memory->serialise());
    if (!again.is_ok() || !(*again == *memory)) std::abort();
    return 0;
}
