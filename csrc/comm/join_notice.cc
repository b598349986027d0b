// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/join_notice.h"

#include <utility>
#include <vector>

#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/roster.h"

namespace pccl::comm {

void JoinNotice::look(Rank awaited) {
    const Duration waited = system_clock().now() - begun_;
    const int every = (options_.size + kMostThatSaySo - 1) / kMostThatSaySo;
    if (options_.rank % every != 0 || !notice_.is_due(waited)) return;
    std::vector<Rank> late;
    if (store_ != nullptr) late = bootstrap::unpublished(*store_, options_.size);
    if (late.empty()) late = {awaited};
    log(LogLevel::kWarning, "group ", options_.name, ": rank ", options_.rank, " of ",
        options_.size, " has waited ", in_seconds(waited), " at ", options_.store->where(), " for ",
        listed(late), " to join");
}

}  // namespace pccl::comm
