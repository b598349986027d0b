// In which process an object was made.
#pragma once

#include "csrc/base/export.h"

namespace pccl {

/// A child of fork() has the objects of its parent, but none of its threads. Cheap enough for the
/// path of every operation.
class PCCL_API ForkMark {
   public:
    ForkMark();
    /// Whether this process is a child of the one that made the mark.
    [[nodiscard]] bool is_child() const;

   private:
    int forks_;  // before the mark
};

}  // namespace pccl
