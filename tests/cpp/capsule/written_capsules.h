// SPDX-License-Identifier: Apache-2.0

// Capsules with a changed description, and the reason why bytes are none.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/program_bytes.h"
#include "tests/cpp/capsule/refusals.h"
#include "tests/cpp/capsule/written_files.h"

namespace pccl::capsule {

using nlohmann::json;
using testing::file_of;
using testing::one_line_of;

inline std::string with(const VerifiedCapsule& capsule, const char* key, const json& value) {
    json manifest = json::parse(capsule.manifest());
    manifest[key] = value;
    return file_of(manifest.dump(1) + "\n", program_bytes(capsule.schedule()),
                   manifest.contains("links") ? 2 : 1);
}

inline std::string why_no_capsule(std::string_view bytes) {
    return one_line_of(VerifiedCapsule::parse(bytes).status());
}

}  // namespace pccl::capsule
