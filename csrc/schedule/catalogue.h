// The sources that a communicator and its GPUs choose from.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Not to be changed while somebody chooses from it.
class PCCL_API Catalogue {
   public:
    /// In the order in which they came.
    [[nodiscard]] std::span<const SourcePtr> of(CollectiveKind kind) const;
    /// Null where there is none of this name.
    [[nodiscard]] SourcePtr find(std::string_view name, CollectiveKind kind) const;
    /// Of this tag; `kind` may be any number.
    [[nodiscard]] SourcePtr find(std::uint32_t tag, CollectiveKind kind) const;
    /// kInvalidArgument where its name is no word of a-z, 0-9 and "_", or where one of its
    /// collective has its name or tag.
    Status add(SourcePtr source);
    /// kInvalidArgument where none of this name was added with sizes of its own.
    Status remove(std::string_view name);
    /// Those that were added with sizes of their own, by collective, and those in parts.
    [[nodiscard]] std::vector<SourcePtr> loaded() const;

    /// A program that switches phases of the network. Nobody chooses it: `parts`, what it does in
    /// one phase each, are run one after the other, by their names. Errors as those of add().
    Status add_in_parts(SourcePtr whole, std::vector<SourcePtr> parts);
    /// Null where there is none of this name.
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
