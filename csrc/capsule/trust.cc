#include "csrc/capsule/trust.h"

#include "csrc/base/config.h"
#include "csrc/base/text.h"
#include "csrc/capsule/signature.h"

namespace pccl::capsule {

Status check_trusted(const CapsuleFile& file) {
    const std::string& path = process_config().trusted_keys;
    if (path.empty()) return Status::ok();
    const auto keys = TrustedKeys::read(path);
    if (!keys.is_ok()) return keys.status().with_context("PCCL_TRUSTED_KEYS");
    return keys->check(file.seal())
        .with_context(
            concat("PCCL_TRUSTED_KEYS does not let capsule ", file.description().name, " in"));
}

}  // namespace pccl::capsule
