// SPDX-License-Identifier: Apache-2.0

// Catalogue of the schedule sources that a communicator and its GPUs choose from.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Catalogue of sources by collective and name. Not thread-safe: do not change it during a lookup.
class PCCL_API Catalogue {
   public:
    /// Returns the sources of `kind` in the order in which they were added.
    [[nodiscard]] std::span<const SourcePtr> of(CollectiveKind kind) const;
    /// Returns null if no source has this name.
    [[nodiscard]] SourcePtr find(std::string_view name, CollectiveKind kind) const;
    /// Returns the source with this tag, or null. `kind` may be any number.
    [[nodiscard]] SourcePtr find(std::uint32_t tag, CollectiveKind kind) const;
    /// Adds a source. kInvalidArgument: the name is empty or contains a character other than a-z,
    /// 0-9 and "_", or a source of the same collective has this name or tag.
    Status add(SourcePtr source);
    /// Removes the loaded sources of this name. kInvalidArgument: no source of this name was added
    /// with its own sizes.
    Status remove(std::string_view name);
    /// Returns the sources that were added with their own sizes, by collective, then the sources in
    /// parts.
    [[nodiscard]] std::vector<SourcePtr> loaded() const;

    /// Adds a program that switches phases of the network. Selection ignores it; callers run its
    /// `parts`, one for each phase, one after the other by name. Errors are those of add().
    Status add_in_parts(SourcePtr whole, std::vector<SourcePtr> parts);
    /// Returns null if no part has this name.
    [[nodiscard]] SourcePtr part(std::string_view name) const;

   private:
    struct InParts {
        SourcePtr whole;
        std::vector<SourcePtr> parts;
    };

    [[nodiscard]] Status check_new(const ScheduleSource& source) const;

    std::array<std::vector<SourcePtr>, 8> by_kind_;
    std::vector<InParts> in_parts_;
};

}  // namespace pccl::schedule
