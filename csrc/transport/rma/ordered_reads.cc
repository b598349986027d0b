#include "csrc/transport/rma/ordered_reads.h"

namespace pccl::transport {

Result<bool> RmaOrderedReads::land() {
    bool landed = false;
    for (; !flights_.empty(); flights_.pop_front()) {
        const RmaCopied copied = flights_.front().copy->land();
        PCCL_TRY(copied.link);
        if (copied.later) break;
        posts_.finish(*flights_.front().post, copied.pieces);
        landed = true;
    }
    return landed;
}

void RmaOrderedReads::fail_all(const Status& status) {
    flights_.clear();
    posts_.fail_all(status);
}

}  // namespace pccl::transport
