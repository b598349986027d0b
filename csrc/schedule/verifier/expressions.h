// What a chunk holds: an expression over the chunks of all inputs, each distinct expression one
// number.
//
// The two operands of a sum are kept in a fixed order, so that a (+) b and b (+) a are one
// expression: they have the same bits. (a (+) b) (+) c and a (+) (b (+) c) are two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/schedule/verifier/event_graph.h"

namespace pccl::schedule {

using Expression = int;

/// What a chunk holds that nothing has written.
inline constexpr Expression kUnwritten = 0;

/// Chunk `chunk` of the input of `rank`.
struct Contribution {
    Rank rank = 0;
    int chunk = 0;
    auto operator<=>(const Contribution&) const = default;
};

[[nodiscard]] std::string to_string(const Contribution& contribution);

class Expressions {
   public:
    Expressions(int ranks, int input_chunks)
        : input_chunks_(input_chunks),
          first_sum_(1 + ranks * input_chunks),
          first_of_(static_cast<std::size_t>(first_sum_), kUnwritten) {}

    [[nodiscard]] Expression input(Contribution what) const {
        return 1 + what.rank * input_chunks_ + what.chunk;
    }
    /// `maker` is the step to blame for it; only the first one to make a sum is remembered.
    [[nodiscard]] Expression sum(Expression a, Expression b, EventId maker);

    /// Whether a sum was asked for that had been made already.
    [[nodiscard]] bool has_repeated_sums() const { return has_repeated_sums_; }

    /// The contributions in `expression`, each as often as it is in it, but for those that follow
    /// when `limit` have been found.
    [[nodiscard]] std::vector<Contribution> contributions(Expression expression, int limit) const;
    /// One of these; `expression` holds something.
    [[nodiscard]] Contribution one_of(Expression expression) const;
    /// "(1+2)+0": the ranks whose contributions are added, in the order in which they are.
    [[nodiscard]] std::string written(Expression expression) const;
    /// The step that added `twice`, which is in `expression` twice or more, once too often.
    [[nodiscard]] EventId who_added_again(Expression expression, Contribution twice) const;

   private:
    struct Sum {
        Expression left = kUnwritten;
        Expression right = kUnwritten;
        EventId maker = kNoEvent;
    };

    [[nodiscard]] Rank rank_of(Expression input) const { return (input - 1) / input_chunks_; }
    [[nodiscard]] bool is_input(Expression expression) const { return expression < first_sum_; }
    [[nodiscard]] const Sum& sum_at(Expression expression) const {
        return sums_[static_cast<std::size_t>(expression - first_sum_)];
    }
    [[nodiscard]] bool contains(Expression expression, Expression input) const;
    /// The sum of two operands among those that were made; kUnwritten: its place, for the next.
    [[nodiscard]] Expression& known(Expression left, Expression right);
    /// The same in others_.
    [[nodiscard]] std::size_t slot_of(Expression left, Expression right) const;
    void grow();

    int input_chunks_;
    Expression first_sum_;
    std::vector<Sum> sums_;
    bool has_repeated_sums_ = false;
    // By its right operand, the first sum with it: mostly the only one, and made about when its
    // operand was, so that looking for it finds what is in a cache.
    std::vector<Expression> first_of_;
    std::vector<Expression> others_;  // by a hash of their operands; kUnwritten: none
    std::size_t count_of_others_ = 0;
};

}  // namespace pccl::schedule
