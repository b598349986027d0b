// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/trust.h"

#include <optional>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/signature.h"

namespace pccl::capsule {

namespace {

/// Returns nullopt if every signer is trusted.
Result<std::optional<TrustedKeys>> trusted_keys() {
    PCCL_TRY(check_settings());
    const std::string& path = process_config().trusted_keys;
    if (path.empty()) return std::optional<TrustedKeys>();
    auto keys = TrustedKeys::read(path);
    if (!keys.is_ok()) return keys.status().with_context("PCCL_TRUSTED_KEYS");
    return std::optional(*std::move(keys));
}

}  // namespace

Status check_trust() { return trusted_keys().status(); }

Status check_trusted(const CapsuleFile& file) {
    PCCL_ASSIGN_OR_RETURN(const auto keys, trusted_keys());
    if (!keys) return Status::ok();
    return keys->check(file.seal())
        .with_context(
            concat("PCCL_TRUSTED_KEYS does not let capsule ", file.description().name, " in"));
}

}  // namespace pccl::capsule
