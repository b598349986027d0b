// SPDX-License-Identifier: Apache-2.0

// Notice on stderr that names the rank that this rank waits for while it joins a group.
#pragma once

#include <memory>

#include <pccl/deadline.h>
#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/comm/options.h"

namespace pccl::comm {

/// Notice of one rank. In a large job only some ranks, spread over the job, print it.
class JoinNotice {
   public:
    /// Keeps a reference to `options`, which must outlive it.
    explicit JoinNotice(const CommunicatorOptions& options) : options_(options) {}

    /// Sets the store in which this rank has published its own entry; null: none yet.
    void look_in(std::shared_ptr<Store> store) { store_ = std::move(store); }
    void look(Rank awaited);

   private:
    static constexpr int kMostThatSaySo = 16;

    const CommunicatorOptions& options_;
    const TimePoint begun_ = system_clock().now();
    std::shared_ptr<Store> store_;
    WaitNotice notice_;
};

}  // namespace pccl::comm
