// SPDX-License-Identifier: Apache-2.0

// Files of capsules for several numbers of ranks, and the reason why one is refused.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/capsule/capsule_file.h"
#include "tests/cpp/capsule/written_capsules.h"

namespace pccl::capsule {

using nlohmann::json;
using testing::capsule_of;
using testing::file_of;
using testing::generated;
using testing::one_line_of;

inline VerifiedCapsule ring_of(int ranks, const char* name = "mine") {
    return capsule_of(generated("ring", schedule::CollectiveKind::kAllReduce, ranks), name);
}

inline CapsuleFile rings(const std::vector<int>& ranks) {
    std::vector<VerifiedCapsule> capsules;
    for (const int each : ranks) capsules.push_back(ring_of(each));
    return CapsuleFile::of(std::move(capsules)).value();
}

/// What rings() of the numbers would say, before these files.
inline std::string around(const std::vector<std::string>& files, std::string_view ranks) {
    json manifest = json::parse(rings({2, 3}).manifest());
    manifest["ranks"] = ranks;
    std::string inside;
    for (const std::string& each : files) inside += each;
    return file_of(manifest.dump(1) + "\n", inside, 3);
}

inline std::string why_not(const Result<CapsuleFile>& file) { return one_line_of(file.status()); }

inline std::string why_not(const std::string& bytes) { return why_not(CapsuleFile::parse(bytes)); }

}  // namespace pccl::capsule
