// SPDX-License-Identifier: Apache-2.0

// NCCL's topology XML, version 1: reader and writer of complete or partial machines.
//
// Any input is safe to read: sizes, depth, lengths and numbers are bounded. An error is
// kInvalidArgument (kUnsupported for version 2), one line, "<name>:<line>: <fault>; <expected>".
#pragma once

#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// Parses a machine; `name` names the text in error messages. Skips elements that PCCL does not
/// use, each with a warning "unknown_element"; keeps unknown attributes.
[[nodiscard]] PCCL_API Result<Machine> parse_machine_xml(std::string_view text,
                                                         std::string_view name, Source source,
                                                         Warnings& warnings);

/// Writes a machine, such that parse_machine_xml returns an equal one. Leaves out attributes
/// without a value.
[[nodiscard]] PCCL_API std::string machine_xml(const Machine& machine);

}  // namespace pccl::topo
