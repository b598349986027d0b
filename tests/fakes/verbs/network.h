// SPDX-License-Identifier: Apache-2.0

// Ways between QPs. The caller of functions that look at QPs holds the lock.
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// The QP that packets of `qp` reach and that takes them; kNone, with a complaint, if none does.
Index find_responder(const SharedQp& qp);

/// The port that has a GID, or a LID.
Index find_port(const ibv_gid& gid);
Index find_port(uint16_t lid);

uint32_t mtu_bytes(int mtu);
uint32_t packets_of(uint32_t length, ibv_mtu mtu);

}  // namespace pccl::fake_verbs
