// SPDX-License-Identifier: Apache-2.0

// Predictor of the time of every algorithm for a collective, in seconds by the cost model: over
// shared memory (shm_cost.h) and by schedules over links (link_model.h, traffic.h, rooted_cost.h).
// Ranks of one host also use memory for links; which of the two is faster depends on the machine.
// predict() is the entry of the model: selection, explain and tests have their times from it.
//
// It is a pure function of data that all ranks share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/bootstrap/layout.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/collective/prediction.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/model/link_model.h"
#include "csrc/costs/model/rooted_cost.h"
#include "csrc/costs/model/shm_cost.h"
#include "csrc/costs/model/traffic.h"
#include "csrc/schedule/catalogue.h"
#include "csrc/schedule/generators/link_graph.h"

namespace pccl::costs {

/// A call and the requested algorithm; empty: the choice is free.
using CallKey = std::pair<Signature, std::string>;

class Predictor {
   public:
    /// A group, which may be hypothetical.
    struct Setting {
        Reach reach;
        std::optional<ShmShape> segment;
        std::shared_ptr<const bootstrap::Layout> layout;
    };
    Predictor(Setting setting, std::shared_ptr<const schedule::Catalogue> catalogue,
              const MachineCosts& costs);

    /// Predicts the algorithms of `catalogue` from now on.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);

    /// Restricts predictions to these links from now on; null: any links, and the segment.
    void restrict_to(std::shared_ptr<const schedule::LinkGraph> links);
    [[nodiscard]] const schedule::LinkGraph* links() const { return followed_.get(); }

    /// Returns all algorithms for `call`, fastest first; for equal times, those of the segment come
    /// before those over links. Requesting a schedule for a collective whose lengths only pairs
    /// have implies that all lengths are equal.
    [[nodiscard]] std::vector<Prediction> predict(const Signature& call,
                                                  std::string_view wanted = {});
    /// Returns the predictions for a call of about this length, in which only the first five bits
    /// count. They are cached, for programs whose calls differ each time. The reference is valid
    /// until the next call.
    [[nodiscard]] const std::vector<Prediction>& predict_about(const Signature& call,
                                                               std::string_view wanted);
    /// Returns why an existing schedule cannot make the call; empty if there is no such schedule.
    [[nodiscard]] std::string why_not(const Signature& call, std::string_view wanted) const;
    /// Returns whether the schedule can make the call, with messages of any number of blocks.
    /// `wanted`: as for predict().
    [[nodiscard]] bool fits(const schedule::ScheduleSource& source, const Signature& call,
                            std::string_view wanted = {}) const;

    [[nodiscard]] schedule::Shape shape_for(const schedule::ScheduleSource& source, Rank root,
                                            int aggregation) const;
    /// Returns the maximum number of elements in a chunk with which the messages in a FIFO fit into
    /// a channel. 0: the longest message has too many chunks even at one element each.
    [[nodiscard]] std::size_t most_in_chunk(const schedule::ScheduleSource& source,
                                            const schedule::Shape& shape,
                                            std::size_t element_bytes) const;
    /// Returns the bytes of an element on links, where 16-bit floats may be widened.
    [[nodiscard]] std::size_t link_element_bytes(const Signature& call) const;

    [[nodiscard]] int ranks() const { return ranks_; }
    [[nodiscard]] bool shares_cores() const { return turns_ > 1; }
    [[nodiscard]] const std::optional<ShmShape>& segment() const { return segment_; }
    [[nodiscard]] const bootstrap::Layout& layout() const { return *layout_; }
    /// Returns the catalogue, with the schedules for this layout.
    [[nodiscard]] const schedule::Catalogue& catalogue() const { return *catalogue_; }

   private:
    [[nodiscard]] bool suits(const schedule::ScheduleSource& source, const Signature& call,
                             std::string_view wanted) const;
    /// Returns the best of all shapes of a source; nullopt if it cannot make the call.
    [[nodiscard]] std::optional<Prediction> best_shape(const schedule::SourcePtr& source,
                                                       const Signature& call);
    /// Returns the prediction for one shape; nullopt if its longest message fits into no channel.
    [[nodiscard]] std::optional<Prediction> over_links(const schedule::SourcePtr& source,
                                                       const schedule::Shape& shape,
                                                       const Signature& call);
    /// A source's execution of a call over links, window by window.
    struct Course {
        const schedule::ScheduleSource& source;
        ShmCall call;
        double length = 0;  // bytes of a block
        std::size_t windows = 1;
        schedule::Cost cost{};
        bool is_from_root = false;  // over sockets; also: to the root
        bool goes_on = false;       // without waiting for other ranks
        double longest_bytes = 0;   // bytes on the longest chain of messages
    };
    [[nodiscard]] Course course_of(const schedule::ScheduleSource& source,
                                   const schedule::Shape& shape, const Signature& call,
                                   std::size_t window) const;
    /// Returns seconds when all ranks share a host; `crossed` may be null.
    [[nodiscard]] double on_one_host(const Course& course, const Traffic* crossed) const;
    [[nodiscard]] double between_hosts(const Course& course, const Traffic& traffic) const;
    [[nodiscard]] RootedCall rooted(const Course& course) const;
    /// Returns the model for repeated calls.
    [[nodiscard]] LinkModel model_for(const Course& course) const;
    /// Returns seconds for a byte of a block of which the busiest rank sends `sent`, when all ranks
    /// share a host.
    [[nodiscard]] double near_byte(const ShmCall& call, double sent, std::size_t windows) const;
    [[nodiscard]] const Traffic& traffic_of(const schedule::SourcePtr& source,
                                            const schedule::Shape& shape);

    const int ranks_;
    const std::optional<ShmShape> segment_;
    const std::shared_ptr<const bootstrap::Layout> layout_;
    const bool shares_a_host_;  // by the layout
    const MachineCosts costs_;
    const double turns_;  // ranks that share a core
    const LinkModel links_;
    std::shared_ptr<const schedule::Catalogue> known_;     // for this layout, over any links
    std::shared_ptr<const schedule::LinkGraph> followed_;  // null: any links
    /// Those of known_ that use only followed_.
    std::shared_ptr<const schedule::Catalogue> catalogue_;
    std::map<std::pair<schedule::SourcePtr, schedule::Shape>, Traffic> traffic_;
    std::map<CallKey, std::vector<Prediction>> ways_;
};

}  // namespace pccl::costs
