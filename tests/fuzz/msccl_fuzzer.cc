// SPDX-License-Identifier: Apache-2.0

// MSCCL's XML. A program that is accepted is a capsule that can be read again.
#include <cstdint>
#include <string_view>

#include "csrc/capsule/msccl/import.h"
#include "tests/fuzz/read_again.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view xml(reinterpret_cast<const char*>(data), size);
    expect_read_again(pccl::capsule::import_msccl(xml, "fuzz"));
    return 0;
}
