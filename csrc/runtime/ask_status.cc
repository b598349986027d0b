// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/ask_status.h"

#include <algorithm>

#include "csrc/base/text.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/transport/control/onlooker.h"

namespace pccl::runtime {
namespace {

Result<transport::GroupId> group_of(const std::string& bytes) {
    transport::GroupId group{};
    if (!bytes.empty() && bytes.size() != group.size())
        return Status::invalid_argument(
            concat("a group's key has ", group.size(), " bytes, not ", bytes.size()));
    std::ranges::copy(bytes, group.begin());
    return group;
}

}  // namespace

Result<std::string> ask_status(const std::string& door, const std::string& group,
                               std::uint32_t first, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(door));
    PCCL_ASSIGN_OR_RETURN(const transport::GroupId asked, group_of(group));
    PCCL_ASSIGN_OR_RETURN(const auto job, bootstrap::job_secret(transport::kOnlookers));
    return transport::ask_status(address, job.value_or(transport::kNoJobSecret),
                                 {.group = asked, .first = first}, deadline);
}

}  // namespace pccl::runtime
