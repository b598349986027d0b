#include "csrc/schedule/generators/cost.h"

#include <algorithm>
#include <bit>

namespace pccl::schedule {
namespace {

int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n) - 1)); }

/// A cost in blocks instead of bytes.
struct BlockCost {
    int rounds = 0;
    long long messages = 0;
    double moved = 0;
    double reduced = 0;
};

/// One algorithm for one shape of two ranks and more; names as in the papers.
class Formula {
   public:
    explicit Formula(const Shape& shape)
        : kind_(shape.kind),
          n_(shape.ranks),
          root_(shape.root),
          chunks_(shape.chunks),
          log_(floor_log2(n_)),
          power_(1 << log_),
          pairs_(n_ - power_),
          folds_(pairs_ > 0 ? 1 : 0) {}

    [[nodiscard]] BlockCost of(Algorithm algorithm) const {
        switch (algorithm) {
            case Algorithm::kRing:
                return is_rooted(kind_) ? chain() : ring();
            case Algorithm::kDoubleBinaryTree:
                return double_tree();
            case Algorithm::kRecursiveDoubling:
                return recursive_doubling();
            case Algorithm::kRecursiveHalving:
                return recursive_halving();
            case Algorithm::kBruck:
                return kind_ == CollectiveKind::kAllGather ? bruck_all_gather()
                                                           : bruck_all_to_all();
            case Algorithm::kOneShot:
                return {1, n_ - 1, others(), reduces() ? others() : 0};
            case Algorithm::kTwoShot:
                return {2, 2 * others_count(), 2 * others() / n_, others() / n_};
            case Algorithm::kBinomial:
                return binomial();
            case Algorithm::kPairwise:
                return {n_ - 1, n_ - 1, others(), 0};
            case Algorithm::kPat:
                return pat();
        }
        return {};
    }

   private:
    [[nodiscard]] long long others_count() const { return n_ - 1; }
    [[nodiscard]] double others() const { return n_ - 1; }
    [[nodiscard]] bool reduces() const {
        return kind_ == CollectiveKind::kAllReduce || kind_ == CollectiveKind::kReduce ||
               kind_ == CollectiveKind::kReduceScatter;
    }

    [[nodiscard]] BlockCost ring() const {
        const long long messages = others_count() * chunks_;
        if (kind_ != CollectiveKind::kAllReduce) {
            return {n_ - 1, messages, others(), reduces() ? others() : 0};
        }
        return {2 * (n_ - 1), 2 * messages / n_, 2 * others() / n_, others() / n_};
    }

    [[nodiscard]] BlockCost chain() const { return {n_ - 1, chunks_, 1.0, reduces() ? 1.0 : 0}; }

    /// Rooted: a rank inside one tree passes half of the chunks to two children or from them, the
    /// root all of them once. all_reduce: up and down, and a leaf's share in the other tree; two
    /// and three ranks are too few for a rank with a parent and two children.
    [[nodiscard]] BlockCost double_tree() const {
        if (kind_ != CollectiveKind::kAllReduce) {
            return {1 + floor_log2(n_ - 1), chunks_, 1.0, reduces() ? 1.0 : 0};
        }
        const int halves = std::min(n_, 4);
        return {2 * log_, static_cast<long long>(halves) * chunks_ / 2, halves / 2.0,
                n_ == 2 ? 0.5 : 1.0};
    }

    /// A rank that sits out waits two rounds longer for what crossed all distances between two that
    /// stand for two, positions 0 to pairs-1; the others one round longer for what comes from one
    /// of these.
    [[nodiscard]] int doubling_rounds() const {
        if (pairs_ == 0) return log_;
        return std::max(log_ + 1, ceil_log2(pairs_) + 2);
    }

    [[nodiscard]] BlockCost recursive_doubling() const {
        if (kind_ == CollectiveKind::kAllReduce) {
            const int vectors = log_ + folds_;
            return {doubling_rounds(), vectors, 1.0 * vectors, 1.0 * vectors};
        }
        // The rank that folded into the first pair's other one gets all but its own block from it,
        // in two messages unless its block is the first.
        return {doubling_rounds(), log_ + std::min(pairs_, 2),
                kept_by_first_pair() + folds_ * others(), 0};
    }

    [[nodiscard]] BlockCost recursive_halving() const {
        if (kind_ == CollectiveKind::kAllReduce) {
            const double parts = 1.0 - 1.0 / power_;
            return {2 * (log_ + folds_), 2 * log_ + folds_, 2 * parts + folds_, parts + folds_};
        }
        const double blocks = kept_by_first_pair() + folds_ * n_;
        return {doubling_rounds(), log_ + folds_, blocks, blocks};
    }

    /// Blocks in all the ranges, of 1, 2, 4, ... positions, that the rank in position 0 is
    /// responsible for on its way through the rounds. It stands for two where anybody does, and so
    /// do its neighbours.
    [[nodiscard]] double kept_by_first_pair() const {
        double blocks = 0;
        for (int positions = 1; positions < power_; positions *= 2) {
            blocks += positions + std::min(pairs_, positions);
        }
        return blocks;
    }

    /// The last rank's blocks wrap round in every round in which it sends two and more.
    [[nodiscard]] BlockCost bruck_all_gather() const {
        long long messages = 0;
        for (int have = 1; have < n_; have *= 2) messages += std::min(have, n_ - have) > 1 ? 2 : 1;
        return {ceil_log2(n_), messages, others(), 0};
    }

    [[nodiscard]] BlockCost bruck_all_to_all() const {
        double moved = 0;
        for (int step = 1; step < n_; step *= 2) {
            // Distances below n with this bit set.
            const int moving = n_ / (2 * step) * step + std::max(0, n_ % (2 * step) - step);
            moved += moving;
        }
        return {ceil_log2(n_), ceil_log2(n_), moved, 0};
    }

    [[nodiscard]] BlockCost binomial() const {
        const int children = ceil_log2(n_);  // of the root
        if (kind_ == CollectiveKind::kBroadcast || kind_ == CollectiveKind::kReduce) {
            return {log_, static_cast<long long>(children) * chunks_, 1.0 * children,
                    reduces() ? 1.0 * children : 0};
        }
        // Subtrees of the root begin at powers of two; a subtree that wraps round within takes two
        // messages.
        const auto wrap = static_cast<unsigned>(n_ - root_);
        const int split = root_ > 0 && !std::has_single_bit(wrap) ? 1 : 0;
        return {log_, children + split, others(), 0};
    }

    [[nodiscard]] BlockCost pat() const {
        if (kind_ != CollectiveKind::kAllReduce) {
            return {log_, others_count(), others(), reduces() ? others() : 0};
        }
        return {2 * log_, 2 * others_count(), 2 * others() / n_, others() / n_};
    }

    CollectiveKind kind_;
    int n_;
    Rank root_;
    int chunks_;
    int log_;    // floor(log2 n)
    int power_;  // the largest power of two <= n
    int pairs_;  // fold.h: ranks that sit out
    int folds_;  // 1 if there are any
};

}  // namespace

Cost cost(Algorithm algorithm, const Shape& shape, double block_bytes) {
    if (shape.ranks <= 1) return {};
    const BlockCost blocks = Formula(shape).of(algorithm);
    return {.rounds = blocks.rounds,
            .messages = blocks.messages,
            .bytes_sent = blocks.moved * block_bytes,
            .bytes_reduced = blocks.reduced * block_bytes};
}

}  // namespace pccl::schedule
