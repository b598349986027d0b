// What every way to make a collective takes, in seconds by the cost model: over shared memory
// (comm/shm/shm_cost.h) and by schedules over links (schedule/simulator/link_model.h), whose
// ranks of one host share memory, too: which of the two is faster is the machine's to say.
//
// A pure function of what all ranks know.
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
#include "csrc/comm/selection/link_costs.h"
#include "csrc/comm/selection/rooted_cost.h"
#include "csrc/comm/shm/shm_cost.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/catalogue.h"
#include "csrc/schedule/generators/link_graph.h"
#include "csrc/schedule/simulator/link_model.h"

namespace pccl::comm {

/// A call, and the algorithm that is wanted; empty where the choice is free.
using Asked = std::pair<Signature, std::string>;

class Predictor {
   public:
    /// A group, which may exist nowhere.
    struct Setting {
        Reach reach;
        std::optional<ShmShape> segment;
        std::shared_ptr<const bootstrap::Layout> layout;
    };
    Predictor(Setting setting, std::shared_ptr<const schedule::Catalogue> catalogue,
              const costs::MachineCosts& costs);

    /// Predicts what `catalogue` has from now on.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);

    /// Predicts what goes over these links alone from now on; null: over any, or the segment.
    void follow(std::shared_ptr<const schedule::LinkGraph> links);
    [[nodiscard]] const schedule::LinkGraph* links() const { return followed_.get(); }

    /// Every way to make `call`, best first; the segment's before those over links that take as
    /// long. Who wants a schedule for a collective of which only pairs know the lengths says that
    /// all have one.
    [[nodiscard]] std::vector<Prediction> predict(const Signature& call,
                                                  std::string_view wanted = {});
    /// What predict() says of a call of about this length, in which no bits after the first five
    /// count: it is kept, for programs whose calls differ each time. Valid until the next call.
    [[nodiscard]] const std::vector<Prediction>& predict_about(const Signature& call,
                                                               std::string_view wanted);
    /// Why a schedule that is there cannot make the call; empty where there is none.
    [[nodiscard]] std::string why_not(const Signature& call, std::string_view wanted) const;
    /// Whether it can make the call, with messages of as many blocks as there are. `wanted`: as
    /// predict() has it.
    [[nodiscard]] bool fits(const schedule::ScheduleSource& source, const Signature& call,
                            std::string_view wanted = {}) const;

    [[nodiscard]] schedule::Shape shape_for(const schedule::ScheduleSource& source, Rank root,
                                            int aggregation) const;
    /// Elements of a chunk with which the messages that a FIFO holds fit into a channel. 0: the
    /// longest has more chunks than would fit with one element each.
    [[nodiscard]] std::size_t most_in_chunk(const schedule::ScheduleSource& source,
                                            const schedule::Shape& shape,
                                            std::size_t element_bytes) const;
    /// Of an element as it goes over links, where halves may be widened.
    [[nodiscard]] std::size_t link_element_bytes(const Signature& call) const;

    [[nodiscard]] int ranks() const { return ranks_; }
    [[nodiscard]] bool shares_cores() const { return turns_ > 1; }
    [[nodiscard]] const std::optional<ShmShape>& segment() const { return segment_; }
    [[nodiscard]] const bootstrap::Layout& layout() const { return *layout_; }
    /// With what was made for this layout.
    [[nodiscard]] const schedule::Catalogue& catalogue() const { return *catalogue_; }

   private:
    [[nodiscard]] bool suits(const schedule::ScheduleSource& source, const Signature& call,
                             std::string_view wanted) const;
    /// Of all shapes that a source may choose; nullopt where it cannot make the call.
    [[nodiscard]] std::optional<Prediction> best_shape(const schedule::SourcePtr& source,
                                                       const Signature& call);
    /// Of one shape; nullopt where its longest message fits into no channel.
    [[nodiscard]] std::optional<Prediction> over_links(const schedule::SourcePtr& source,
                                                       const schedule::Shape& shape,
                                                       const Signature& call);
    /// How a source makes a call over links, window after window.
    struct Course {
        const schedule::ScheduleSource& source;
        ShmCall call;
        double length = 0;  // bytes of a block
        std::size_t windows = 1;
        schedule::Cost cost{};
        bool is_from_root = false;  // over sockets, or to it
        bool goes_on = false;       // which does not wait for the others
        double longest_bytes = 0;   // that the longest chain of messages carries
    };
    [[nodiscard]] Course course_of(const schedule::ScheduleSource& source,
                                   const schedule::Shape& shape, const Signature& call,
                                   std::size_t window) const;
    /// Seconds where all ranks share a host; `crossed` may be null.
    [[nodiscard]] double on_one_host(const Course& course, const schedule::Traffic* crossed) const;
    [[nodiscard]] double between_hosts(const Course& course,
                                       const schedule::Traffic& traffic) const;
    [[nodiscard]] RootedCall rooted(const Course& course) const;
    /// For a call that is made again and again.
    [[nodiscard]] schedule::LinkModel model_for(const Course& course) const;
    /// Seconds for a byte of a block that the busiest rank sends `sent` times, where all share a
    /// host.
    [[nodiscard]] double near_byte(const ShmCall& call, double sent, std::size_t windows) const;
    [[nodiscard]] const schedule::Traffic& traffic_of(const schedule::SourcePtr& source,
                                                      const schedule::Shape& shape);

    const int ranks_;
    const std::optional<ShmShape> segment_;
    const std::shared_ptr<const bootstrap::Layout> layout_;
    const bool shares_a_host_;  // as far as the layout knows
    const costs::MachineCosts costs_;
    const double turns_;  // ranks that share a core
    const schedule::LinkModel links_;
    std::shared_ptr<const schedule::Catalogue> known_;      // for this layout, over any links
    std::shared_ptr<const schedule::LinkGraph> followed_;   // null: any links do
    std::shared_ptr<const schedule::Catalogue> catalogue_;  // of these, what follows those
    std::map<std::pair<schedule::SourcePtr, schedule::Shape>, schedule::Traffic> traffic_;
    std::map<Asked, std::vector<Prediction>> ways_;
};

}  // namespace pccl::comm
