// SPDX-License-Identifier: Apache-2.0

// A trial of a plug-in in a child process, so that one that crashes while it starts does not take
// this process with it.
#pragma once

#include <functional>
#include <string>

#include <pccl/deadline.h>
#include <pccl/status.h>

namespace pccl::sys::net_plugin {

/// Call that the child makes next: it is stored in memory that both processes share.
class TrialStep {
   public:
    virtual ~TrialStep() = default;
    /// `step` is a literal.
    virtual void at(const char* step) = 0;
};

/// Runs `body` in a child of fork(). kUnavailable, with the step, where a signal or exit() ends the
/// child. A child that has not ended by `deadline` is killed and proves nothing: it may wait for a
/// lock that another thread of this process held.
[[nodiscard]] Status run_trial(const std::function<void(TrialStep&)>& body, Deadline deadline);

}  // namespace pccl::sys::net_plugin
