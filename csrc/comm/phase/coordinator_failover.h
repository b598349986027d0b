// SPDX-License-Identifier: Apache-2.0

// Coordinator failover of a phase switch, if rank 0 is gone before all ranks have its result: the
// lowest remaining rank becomes the successor, and the others follow it as they followed rank 0.
//
// It requests the result from all others first, because one may have received it. If none has and
// all were ready, rank 0 may have made the switches commit: the state of the switches decides. If
// one was not ready, rank 0 has not.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "csrc/comm/phase/phase_talk.h"

namespace pccl::comm {

/// Reads the switches. Returns whether they have the new phase.
using ReadBack = std::function<Result<bool>()>;

class CoordinatorFailover {
   public:
    /// Creates the failover on a rank other than 0 that has been ready. `read_back`: null if this
    /// rank cannot read switches. `answer_timeout` is for ranks that do not detect the loss of rank
    /// 0 themselves.
    CoordinatorFailover(PhaseTalk& talk, ReadBack read_back, Duration answer_timeout)
        : talk_(talk), read_back_(std::move(read_back)), last_(Deadline::after(answer_timeout)) {}

    /// Returns one result on all remaining ranks. `lost`: the error of rank 0. kAborted if this
    /// thread is interrupted.
    [[nodiscard]] Result<Switching::SwitchResult> decide_result(const Status& lost);

   private:
    using Stage = Switching::Stage;

    /// Returns nothing if that rank is gone, too, or takes no part.
    [[nodiscard]] Result<std::optional<Switching::SwitchResult>> receive_from(Rank successor);
    [[nodiscard]] Result<Switching::SwitchResult> decide(const Status& lost);
    /// Sends requests until the rank reports whether it was ready, or the result.
    [[nodiscard]] Status await_answer_of(Rank rank);
    /// Returns whether the rank has nothing more to report. Records if it was not ready.
    [[nodiscard]] bool takes_no_part(Rank rank);
    [[nodiscard]] Switching::SwitchResult as_switches_show(const Status& lost) const;

    PhaseTalk& talk_;
    const ReadBack read_back_;
    const Deadline last_;
    bool were_ready_ = true;  // all ranks, by the answers so far
};

}  // namespace pccl::comm
