// SPDX-License-Identifier: Apache-2.0

// What steps do, without asking the library.
#pragma once

#include "csrc/schedule/schedule.h"

namespace pccl::schedule::testing {

inline bool is_reduction(Action action) {
    return action == Action::kReduce || action == Action::kRecvReduce ||
           action == Action::kRecvReduceSend || action == Action::kRecvReduceCopySend;
}

}  // namespace pccl::schedule::testing
