// Enumerators by the names that Python users write.
#pragma once

#include <string>

#include "csrc/base/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/comm/arithmetic.h"
#include "csrc/schedule/schedule.h"

namespace pccl::bindings {

using comm::to_string;

/// The enumerator up to `last` that prints as `name`; throws InvalidArgumentError "... is no
/// <what>".
template <typename Enum>
Enum named(const std::string& name, Enum last, const char* what) {
    for (int i = 0; i <= static_cast<int>(last); ++i) {
        if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
    }
    throw_status(Status::invalid_argument(concat("'", name, "' is no ", what)));
}

inline schedule::CollectiveKind kind_of(const std::string& name) {
    return named(name, schedule::CollectiveKind::kAllToAll, "collective");
}

}  // namespace pccl::bindings
