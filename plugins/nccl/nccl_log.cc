// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/nccl_log.h"

namespace pccl::nccl {

NcclLog& nccl_log() {
    static NcclLog log;
    return log;
}

}  // namespace pccl::nccl
