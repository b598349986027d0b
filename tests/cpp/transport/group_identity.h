// SPDX-License-Identifier: Apache-2.0

// The group that tests of links are in.
#pragma once

#include "csrc/transport/control/introduction.h"

namespace pccl::transport {

inline constexpr GroupId kGroup{7, 7, 7};
inline constexpr Secret kSecret{1, 2, 3};

}  // namespace pccl::transport
