// The XML of MSCCL, as its compiler writes it: an <algo> of <gpu>s, of <tb>s, of <step>s.
#pragma once

#include <pugixml.hpp>

#include "csrc/capsule/msccl/algo.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::capsule::msccl {

/// kInvalidArgument with file and line for what is no such XML, kUnsupported for what it says that
/// capsules cannot. `text` must outlive the result.
[[nodiscard]] Result<Algo> read_xml(const sys::XmlText& text, pugi::xml_node root);

}  // namespace pccl::capsule::msccl
