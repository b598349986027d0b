// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/import.h"

#include <functional>

#include "csrc/capsule/msccl/convert.h"
#include "csrc/capsule/mscclpp/read_plan.h"
#include "csrc/capsule/mscclpp/run.h"
#include "csrc/capsule/mscclpp/shares.h"
#include "csrc/capsule/mscclpp/two_sided.h"

namespace pccl::capsule {
namespace {

/// Returns the result of `convert` for a plan's program.
template <typename Made>
Result<Made> converted(std::string_view json, std::string_view file,
                       const std::function<Result<Made>(const msccl::Algo&)>& convert) {
    PCCL_ASSIGN_OR_RETURN(mscclpp::Plan plan, mscclpp::read_plan(json, file));
    PCCL_TRY(mscclpp::cut_into_shares(plan));
    PCCL_ASSIGN_OR_RETURN(const mscclpp::Execution execution, mscclpp::execute(plan));
    return convert(mscclpp::two_sided(plan, execution));
}

}  // namespace

Result<Capsule> import_mscclpp(std::string_view json, std::string_view file,
                               std::string_view name) {
    return converted<Capsule>(json, file, [&](const msccl::Algo& algo) {
        return msccl::capsule_of(algo, name, "imported from an MSCCL++ plan");
    });
}

Result<schedule::Schedule> unproven_mscclpp(std::string_view json, std::string_view file) {
    return converted<schedule::Schedule>(json, file, msccl::unproven_schedule_of);
}

}  // namespace pccl::capsule
