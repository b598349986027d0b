// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/core_claim.h"

#include <algorithm>

#include "csrc/base/config.h"
#include "csrc/base/text/digest.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/sys/host.h"

namespace pccl::bootstrap {

CoreClaim CoreClaim::of_process() {
    Digest set;
    set.add(sys::usable_cores().to_string());
    return {.cores = usable_cores(),
            .core_set = set.value(),
            .tcp_threads = process_config().tcp_threads.value_or(-1)};
}

int CoreClaim::threads(int sharers) const {
    return tcp_threads >= 0 ? tcp_threads + 1 : std::max(cores / std::max(sharers, 1), 1);
}

}  // namespace pccl::bootstrap
