// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/onlooker.h"

#include "csrc/transport/control/inquiry.h"

namespace pccl::transport {

Result<std::string> ask_status(const sys::Address& door, const Secret& job,
                               const StatusQuestion& question, Deadline deadline) {
    return inquire({.address = door, .secret = job, .of_strangers = StatusCode::kInvalidArgument},
                   {.request = {.group = kOnlookers, .source = kNoRank, .destination = kNoRank},
                    .service = Service::kStatus,
                    .purpose = purpose_of(question)},
                   deadline);
}

}  // namespace pccl::transport
