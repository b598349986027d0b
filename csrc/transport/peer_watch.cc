// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/peer_watch.h"

namespace pccl::transport {
namespace {

// A check is a system call, and reading the clock costs more than counting: most calls do neither.
constexpr int kFreeLooks = 64;
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);
constexpr Duration kBrokenGrace = std::chrono::milliseconds(200);

}  // namespace

Status PeerWatch::look_idle() {
    if (++idle_ < kFreeLooks) return Status::ok();
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenLooks) return Status::ok();
    looked_ = now;
    return look();
}

Status PeerWatch::explain(const Status& fault) {
    PCCL_TRY(look());
    const TimePoint now = system_clock().now();
    if (broken_ == TimePoint{}) broken_ = now;
    return now - broken_ < kBrokenGrace ? Status::ok() : fault;
}

}  // namespace pccl::transport
