// SPDX-License-Identifier: Apache-2.0

// Returns the error for a rejected capsule.
#pragma once

#include <pccl/status.h>
#include "csrc/base/text.h"

namespace pccl::capsule {

template <typename... Parts>
Status refuse(const Parts&... parts) {
    return Status::invalid_argument(concat(parts...));
}

}  // namespace pccl::capsule
