// SPDX-License-Identifier: Apache-2.0

// The rules of control.h that disturb requests. The caller holds the lock.
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// What applies to the first request of a send queue; null if nothing does. Each request is looked
/// up once.
const fake_verbs_rule* find_rule(SharedQp& qp);

/// Keeps the requests of a QP that fails, if a rule lets them arrive later.
void keep_late(SharedQp& qp);

/// Whether a rule still holds kept requests.
bool is_late_held(const SharedQp& qp);

/// Whether a rule still holds the first request.
bool is_held(const SharedQp& qp, const fake_verbs_rule& rule, uint64_t now);

}  // namespace pccl::fake_verbs
