// The little that NCCL's two XML formats share, besides loading: numbers, and how it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/base/text.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::topo {

using sys::shown;
using sys::XmlLimits;
using sys::XmlText;

/// "0d:00.0" and "0000:0D:00.0" as "0000:0d:00.0"; nullopt for what is no PCI bus id.
[[nodiscard]] std::optional<std::string> parse_bus_id(std::string_view text);
/// `document` as text, indented by two spaces, without a declaration; as NCCL reads it.
[[nodiscard]] std::string to_text(const pugi::xml_document& document);

}  // namespace pccl::topo
