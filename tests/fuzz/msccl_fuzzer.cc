// MSCCL's XML. A program that is accepted is a capsule that can be read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "csrc/capsule/msccl/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view xml(reinterpret_cast<const char*>(data), size);
    const auto capsule = pccl::capsule::import_msccl(xml, "fuzz");
    if (!capsule.is_ok()) return 0;
    if (!pccl::capsule::Capsule::parse(capsule->bytes()).is_ok()) std::abort();
    return 0;
}
