// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/link.h"

#include "csrc/base/ids.h"

namespace pccl::transport {

Result<std::size_t> SendLink::send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                            Flush flush) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const bool is_last = i + 1 == pieces.size();
        const auto piece = send(channel, pieces[i], is_last ? flush : Flush::kLater);
        // The bytes taken before the fault count; the next call returns the fault again.
        if (!piece.is_ok() && taken == 0) return piece.status();
        if (!piece.is_ok()) break;
        taken += *piece;
        if (*piece == pieces[i].size()) continue;
        if (!is_last) PCCL_TRY(this->flush(channel).status());
        break;
    }
    return taken;
}

}  // namespace pccl::transport
