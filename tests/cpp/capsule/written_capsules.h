// SPDX-License-Identifier: Apache-2.0

// Capsules, files of parts that need not fit, and the reason why bytes are no capsule.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/text/text.h"
#include "csrc/capsule/capsule.h"
#include "csrc/capsule/program_bytes.h"
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

/// Fails the running test unless something is refused, in one line; returns that.
inline std::string one_line_of(const Status& status) {
    EXPECT_FALSE(status.is_ok());
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    return status.message();
}

}  // namespace pccl::capsule::testing

namespace pccl::capsule {

using nlohmann::json;
using testing::file_of;
using testing::one_line_of;

/// Returns the file of `capsule` with another value in its manifest.
inline std::string with(const VerifiedCapsule& capsule, const char* key, const json& value) {
    json manifest = json::parse(capsule.manifest());
    manifest[key] = value;
    return file_of(manifest.dump(1) + "\n", program_bytes(capsule.schedule()),
                   manifest.contains("links") ? 2 : 1);
}

/// Returns the error of bytes that are no capsule.
inline std::string why_no_capsule(std::string_view bytes) {
    return one_line_of(VerifiedCapsule::parse(bytes).status());
}

}  // namespace pccl::capsule
