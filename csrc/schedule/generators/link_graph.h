// SPDX-License-Identifier: Apache-2.0

// Graph of the links between the ranks of a group.
#pragma once

#include <optional>
#include <vector>

#include "csrc/schedule/generators/along_links.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

class PCCL_API LinkGraph {
   public:
    /// Keeps the links between two ranks of 0 to `ranks` - 1 and ignores the others.
    LinkGraph(int ranks, const std::vector<DirectedLink>& links);

    [[nodiscard]] int ranks() const { return ranks_; }
    /// Returns the links in ascending order, each once.
    [[nodiscard]] const std::vector<DirectedLink>& links() const { return links_; }
    [[nodiscard]] bool has(Rank from, Rank to) const;
    /// Returns whether every rank has a link to every other.
    [[nodiscard]] bool is_complete() const;
    /// Returns a pair of ranks with no route from the first to the second; none if all reach all.
    [[nodiscard]] std::optional<DirectedLink> apart() const;
    /// Returns a ring through all ranks, by position: the order 0, 1, ... if it has the links, or
    /// else the result of ring_through_all(). Empty if no ring was found.
    [[nodiscard]] RankOrder ring() const;
    [[nodiscard]] bool has_ring() const { return !ring().empty(); }
    /// Returns a rank that has no outgoing or no incoming link.
    [[nodiscard]] std::optional<Rank> cut_off() const;
    /// Returns the first link that `program` of rank `from` requires and this graph does not have.
    [[nodiscard]] std::optional<DirectedLink> missing(const Program& program, Rank from) const;
    /// Returns whether all messages of the source use only these links.
    [[nodiscard]] bool carries(const ScheduleSource& source, const Shape& shape,
                               const RankOrder& order) const;

   private:
    [[nodiscard]] std::vector<bool> reached_from(Rank first) const;

    int ranks_;
    std::vector<DirectedLink> links_;
};

}  // namespace pccl::schedule
