// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/in_flight_copy.h"

namespace pccl::transport {

Result<bool> RmaOrderedReads::finish() {
    bool landed = false;
    for (; !in_flight_.empty(); in_flight_.pop_front()) {
        const RmaCopied copied = in_flight_.front().copy->finish();
        PCCL_TRY(copied.link);
        if (copied.later) break;
        posts_.finish(*in_flight_.front().post, copied.pieces);
        landed = true;
    }
    return landed;
}

void RmaOrderedReads::fail_all(const Status& status) {
    in_flight_.clear();
    posts_.fail_all(status);
}

}  // namespace pccl::transport
