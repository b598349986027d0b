// SPDX-License-Identifier: Apache-2.0

// Documents and how the reader of XML takes them.
#pragma once

#include "csrc/sys/xml/xml_reader.h"

namespace pccl::sys {

inline std::string refusal(std::string_view text, const XmlReaderLimits& limits = {}) {
    return read_xml(text, limits).status().message();
}

}  // namespace pccl::sys
