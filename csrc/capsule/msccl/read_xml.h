// SPDX-License-Identifier: Apache-2.0

// Reader of MSCCL's XML, as its compiler writes it: an <algo> of <gpu>s, of <tb>s, of <step>s.
#pragma once

#include <optional>
#include <pugixml.hpp>

#include "csrc/capsule/msccl/algo.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::capsule::msccl {

/// Reads the algorithm. `custom` is the collective of an algorithm with coll="custom".
/// kInvalidArgument, with file and line: the XML is invalid, or `custom` was passed without need.
/// kUnsupported: capsules cannot express it. `text` must outlive the result.
[[nodiscard]] Result<Algo> read_xml(const sys::XmlText& text, pugi::xml_node root,
                                    const std::optional<AlgoCollective>& custom);

}  // namespace pccl::capsule::msccl
