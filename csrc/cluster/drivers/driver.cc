// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

std::string_view to_string(Step step) {
    switch (step) {
        case Step::kConnect:
            return "connect";
        case Step::kLock:
            return "lock";
        case Step::kRead:
            return "read";
        case Step::kPrepare:
            return "prepare";
        case Step::kCommit:
            return "commit";
        case Step::kLight:
            return "light";
        case Step::kConfirm:
            return "confirm";
        case Step::kCancel:
            return "cancel";
        case Step::kWrite:
            return "write";
        case Step::kSave:
            return "save";
        case Step::kRelease:
            return "release";
    }
    return "unknown";
}

std::string_view to_string(Commitment commitment) {
    switch (commitment) {
        case Commitment::kConfirmed:
            return "confirmed";
        case Commitment::kCandidate:
            return "candidate";
        case Commitment::kImmediate:
            return "immediate";
    }
    return "unknown";
}

}  // namespace pccl::cluster
