// Which ranks of a group have a link to which, and what that allows.
#pragma once

#include <optional>
#include <vector>

#include "csrc/schedule/generators/along_links.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

class PCCL_API LinkGraph {
   public:
    /// Links between two ranks from 0 to `ranks` - 1; those of others do not count.
    LinkGraph(int ranks, const std::vector<DirectedLink>& links);

    [[nodiscard]] int ranks() const { return ranks_; }
    /// In ascending order, each once.
    [[nodiscard]] const std::vector<DirectedLink>& links() const { return links_; }
    [[nodiscard]] bool has(Rank from, Rank to) const;
    /// Every rank has a link to every other.
    [[nodiscard]] bool is_complete() const;
    /// A rank from which no way leads to the other; none: all reach all.
    [[nodiscard]] std::optional<DirectedLink> apart() const;
    /// Ranks by position on a ring through all of them: in their own order where that has the
    /// links, else as ring_through_all() finds it; empty where it finds none.
    [[nodiscard]] RankOrder ring() const;
    [[nodiscard]] bool has_ring() const { return !ring().empty(); }
    /// A rank that has no link to any other, or none from any.
    [[nodiscard]] std::optional<Rank> cut_off() const;
    /// The first one along which rank `from` sends by `program`, and which is not here.
    [[nodiscard]] std::optional<DirectedLink> missing(const Program& program, Rank from) const;
    /// Whether all that the ranks send goes over these links.
    [[nodiscard]] bool carries(const ScheduleSource& source, const Shape& shape,
                               const RankOrder& order) const;

   private:
    [[nodiscard]] std::vector<bool> reached_from(Rank first) const;

    int ranks_;
    std::vector<DirectedLink> links_;
};

}  // namespace pccl::schedule
