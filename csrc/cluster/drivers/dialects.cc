// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/dialects.h"

#include <algorithm>
#include <array>

#include "csrc/base/text/text.h"
#include "csrc/cluster/drivers/electrical_dialects.h"
#include "csrc/cluster/drivers/optical_dialects.h"

namespace pccl::cluster {
namespace {

constexpr std::array kDialects = {
    dialects::kPccl,         dialects::kPolatis,
    dialects::kPolatisPairs, dialects::kWavelengthRouter,
    dialects::kPcclVlan,     dialects::kIetfInterfaces,
};

}  // namespace

const Dialect* find_dialect(std::string_view name) {
    const auto* const found = std::find_if(kDialects.begin(), kDialects.end(),
                                           [&](const Dialect& each) { return each.name == name; });
    return found == kDialects.end() ? nullptr : found;
}

std::string dialect_names(bool electrical) {
    std::string names;
    for (const Dialect& each : kDialects)
        if (each.is_electrical() == electrical)
            names += concat(names.empty() ? "" : ", ", each.name);
    return names;
}

}  // namespace pccl::cluster
