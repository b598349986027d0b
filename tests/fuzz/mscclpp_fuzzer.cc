// Execution plans of MSCCL++. A plan that is accepted is a capsule that can be read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "csrc/capsule/mscclpp/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view json(reinterpret_cast<const char*>(data), size);
    const auto capsule = pccl::capsule::import_mscclpp(json, "fuzz");
    if (!capsule.is_ok()) {
        if (capsule.status().message().find('\n') != std::string::npos) std::abort();
        return 0;
    }
    if (!pccl::capsule::Capsule::parse(capsule->bytes()).is_ok()) std::abort();
    return 0;
}
