// NCCL's topology XML, version 1, in and out; complete or partial.
//
// Any input is safe to read: sizes, depth, lengths and numbers are bounded. An error is
// kInvalidArgument (kUnsupported for version 2), one line, "<name>:<line>: <what>; <what is
// right>".
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// `name` stands for the text in messages. Elements that mean nothing to PCCL are skipped, each
/// with a warning "unknown_element"; unknown attributes are kept.
[[nodiscard]] PCCL_API Result<Machine> parse_machine_xml(std::string_view text,
                                                         std::string_view name, Source source,
                                                         Warnings& warnings);

/// What parse_machine_xml gives back equal. Of attributes that nobody knows, none is written.
[[nodiscard]] PCCL_API std::string machine_xml(const Machine& machine);

}  // namespace pccl::topo
