// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/session_log.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::p2p {

void SessionLog::record(runtime::SessionEventKind kind, std::string peer, std::string text) const {
    runtime::session_recorder().add_event({.at = system_clock().now(),
                                           .kind = kind,
                                           .session = session_.name,
                                           .peer = std::move(peer),
                                           .text = std::move(text)});
}

void SessionLog::refuse_connection(const Status& why) {
    record(runtime::SessionEventKind::kRefused, {}, concat("a connection: ", why.message()));
    refusals_.line(LogLevel::kWarning, session_.name, "session \"", session_.name,
                   "\" refused a connection: ", why.message());
}

void SessionLog::refuse_requests(std::uint64_t all) {
    const std::uint64_t logged = logged_refusals_.exchange(all);
    if (all <= logged) return;
    const std::string what =
        concat(all - logged, " requests for memory that is not registered with it, or beyond it");
    record(runtime::SessionEventKind::kRefused, {}, what);
    refusals_.line(LogLevel::kWarning, session_.name, "session \"", session_.name, "\" refused ",
                   what);
}

}  // namespace pccl::p2p
