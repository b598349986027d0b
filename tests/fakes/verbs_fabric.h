// SPDX-License-Identifier: Apache-2.0

// The fake libibverbs (tests/fakes/verbs) in this process and its children.
#pragma once

#include <string>

namespace pccl::fakes {

/// Lets this process open the fake in place of rdma-core's library, on a fabric of its own, which
/// ends with it. Devices as FAKE_VERBS_DEVICES describes them, unless the environment has that. To
/// be called before the settings are read: by the initialiser of a static.
bool use_fake_verbs();

/// Returns whether tests run on devices of this machine instead: PCCL_TEST_RDMA=real, as
/// tools/rdma/suites.txt sets it where there are rxe0 and rxe1.
bool has_real_verbs();
/// Returns the name of a device of either kind, 0 or 1.
std::string verbs_device(int index);

}  // namespace pccl::fakes
