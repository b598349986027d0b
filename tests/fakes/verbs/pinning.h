// SPDX-License-Identifier: Apache-2.0

// Pages of registered memory, where FAKE_VERBS_GUARD is 1. A network interface goes on to use the
// pages that were registered when their addresses are unmapped, or mapped anew: what it writes is
// seen by nobody. The fake, which knows addresses alone, finds this out: it keeps references to
// some pages of each region, and compares. This needs the right to read page numbers
// (CAP_SYS_ADMIN).
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// Keeps references to pages of a region of this process; the descriptors that hold them.
void pin(SharedMr& region, int (&descriptors)[2]);
void unpin(const int (&descriptors)[2]);

/// Whether the addresses of a region have other pages now than when it was registered.
bool is_mapped_anew(const SharedMr& region);

}  // namespace pccl::fake_verbs
