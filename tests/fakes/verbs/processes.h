// SPDX-License-Identifier: Apache-2.0

// The processes of a fabric: joining, and what is left of those that ended.
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// Makes an entry for the calling process; kNone if the table is full.
Index join_process(Fabric& all);

/// Takes the mutex, also after a holder was killed.
void lock_fabric(Fabric& all);

}  // namespace pccl::fake_verbs
