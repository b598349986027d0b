#include "csrc/capsule/mscclpp/import.h"

#include <string>

#include "csrc/capsule/msccl/convert.h"
#include "csrc/capsule/mscclpp/plan.h"
#include "csrc/capsule/mscclpp/two_sided.h"

namespace pccl::capsule {

Result<Capsule> import_mscclpp(std::string_view json, std::string_view file,
                               std::string_view name) {
    PCCL_ASSIGN_OR_RETURN(const mscclpp::Plan plan, mscclpp::read_plan(json, file));
    PCCL_ASSIGN_OR_RETURN(const msccl::Algo algo, mscclpp::two_sided(plan, std::string(file)));
    return msccl::capsule_of(algo, name, "imported from an MSCCL++ plan");
}

Result<schedule::Schedule> unproven_mscclpp(std::string_view json, std::string_view file) {
    PCCL_ASSIGN_OR_RETURN(const mscclpp::Plan plan, mscclpp::read_plan(json, file));
    PCCL_ASSIGN_OR_RETURN(const msccl::Algo algo, mscclpp::two_sided(plan, std::string(file)));
    return msccl::unproven_schedule_of(algo);
}

}  // namespace pccl::capsule
