// SPDX-License-Identifier: Apache-2.0

// What a fuzzer expects of a capsule that was made.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include "csrc/capsule/capsule.h"

/// Aborts unless its bytes give the same bytes when they are read. Takes the capsule over, since
/// bytes that are in use are not proven again.
inline void expect_read_again(pccl::Result<pccl::capsule::VerifiedCapsule> made) {
    using pccl::capsule::VerifiedCapsule;
    if (!made.is_ok()) return;
    const std::string bytes = VerifiedCapsule(std::move(made).value()).bytes();
    const auto again = VerifiedCapsule::parse(bytes);
    if (!again.is_ok() || again->bytes() != bytes) std::abort();
}
