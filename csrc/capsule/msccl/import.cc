// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/msccl/import.h"

#include "csrc/capsule/msccl/convert.h"
#include "csrc/capsule/msccl/read_xml.h"

namespace pccl::capsule {

Result<VerifiedCapsule> import_msccl(std::string_view xml, std::string_view file,
                                     std::string_view name,
                                     const std::optional<msccl::AlgoCollective>& custom) {
    sys::XmlText text(xml, file);
    PCCL_ASSIGN_OR_RETURN(const pugi::xml_node root, text.load());
    PCCL_ASSIGN_OR_RETURN(const msccl::Algo algo, msccl::read_xml(text, root, custom));
    return msccl::capsule_of(algo, name, "imported from MSCCL XML");
}

Result<schedule::Schedule> unproven_msccl(std::string_view xml, std::string_view file) {
    sys::XmlText text(xml, file);
    PCCL_ASSIGN_OR_RETURN(const pugi::xml_node root, text.load());
    PCCL_ASSIGN_OR_RETURN(const msccl::Algo algo, msccl::read_xml(text, root, {}));
    return msccl::unproven_schedule_of(algo);
}

}  // namespace pccl::capsule
