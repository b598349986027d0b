// SPDX-License-Identifier: Apache-2.0

// Common parts of NCCL's two XML formats, besides loading: numbers, and the text form.
#pragma once

#include <cstdint>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/text/text.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::topo {

using sys::shown;
using sys::XmlLimits;
using sys::XmlText;

/// Returns "0d:00.0" and "0000:0D:00.0" as "0000:0d:00.0"; nullopt if the text is no PCI bus id.
[[nodiscard]] std::optional<std::string> parse_bus_id(std::string_view text);
/// Returns `document` as text in the form that NCCL reads: indented by two spaces, without a
/// declaration.
[[nodiscard]] std::string to_text(const pugi::xml_document& document);

}  // namespace pccl::topo
