// SPDX-License-Identifier: Apache-2.0

// The fake libibverbs (tests/fakes/verbs) in this process and its children.
#pragma once

namespace pccl::fakes {

/// Lets this process open the fake in place of rdma-core's library, on a fabric of its own, which
/// ends with it. Devices as FAKE_VERBS_DEVICES describes them, unless the environment has that. To
/// be called before the settings are read: by the initialiser of a static.
bool use_fake_verbs();

}  // namespace pccl::fakes
