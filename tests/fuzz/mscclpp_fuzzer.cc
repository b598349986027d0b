// SPDX-License-Identifier: Apache-2.0

// Execution plans of MSCCL++. A plan that is accepted is a capsule that can be read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "csrc/capsule/mscclpp/import.h"
#include "tests/fuzz/read_again.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view json(reinterpret_cast<const char*>(data), size);
    auto capsule = pccl::capsule::import_mscclpp(json, "fuzz");
    if (!capsule.is_ok() && capsule.status().message().find('\n') != std::string::npos)
        std::abort();
    expect_read_again(std::move(capsule));
    return 0;
}
