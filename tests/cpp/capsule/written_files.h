// SPDX-License-Identifier: Apache-2.0

// Capsules, and files of parts that need not fit, for tests.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/text/text.h"
#include "csrc/capsule/capsule.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::capsule::testing {

inline schedule::Schedule generated(const char* algorithm, schedule::CollectiveKind kind,
                                    int ranks) {
    const auto source = schedule::built_in(algorithm, kind).value();
    return schedule::generate(*source, schedule::least_shape(*source, ranks)).value();
}

inline VerifiedCapsule capsule_of(const schedule::Schedule& schedule, const char* name = "mine") {
    return VerifiedCapsule::make({.name = name}, schedule).value();
}

/// A file of these parts with the right lengths and digest.
inline std::string file_of(std::string_view manifest, std::string_view programs, int version = 1) {
    std::string bytes = concat("pccl-capsule ", version, " ", manifest.size(), " ", programs.size(),
                               "\n", manifest, programs);
    const sys::Digest digest = sys::sha256(bytes);
    return bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

}  // namespace pccl::capsule::testing
