// SPDX-License-Identifier: Apache-2.0

// Value of a chunk: an expression over the chunks of all inputs, numbered so that equal expressions
// have equal numbers.
//
// The two operands of a sum are stored in a fixed order, so that a (+) b and b (+) a are one
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

/// Value of a chunk that was never written.
inline constexpr Expression kUnwritten = 0;

/// Chunk `chunk` of the input of `rank`.
struct ChunkContribution {
    Rank rank = 0;
    int chunk = 0;
    auto operator<=>(const ChunkContribution&) const = default;
};

[[nodiscard]] std::string to_string(const ChunkContribution& contribution);

class Expressions {
   public:
    Expressions(int ranks, int input_chunks)
        : input_chunks_(input_chunks),
          first_sum_(1 + ranks * input_chunks),
          first_of_(static_cast<std::size_t>(first_sum_), kUnwritten) {}

    [[nodiscard]] Expression input(ChunkContribution what) const {
        return 1 + what.rank * input_chunks_ + what.chunk;
    }
    /// Returns the sum. `maker` is the step reported in errors; only the first step that makes a
    /// sum is stored.
    [[nodiscard]] Expression sum(Expression a, Expression b, EventId maker);

    /// Returns whether a sum was requested again.
    [[nodiscard]] bool has_repeated_sums() const { return has_repeated_sums_; }

    /// Returns the contributions in `expression`, with repetitions, at most `limit`.
    [[nodiscard]] std::vector<ChunkContribution> contributions(Expression expression,
                                                               int limit) const;
    /// Returns one of the contributions; `expression` is not kUnwritten.
    [[nodiscard]] ChunkContribution one_of(Expression expression) const;
    /// Returns the order of summation by ranks, such as "(1+2)+0".
    [[nodiscard]] std::string written(Expression expression) const;
    /// Returns the step that added `twice` a second time; `expression` contains it at least twice.
    [[nodiscard]] EventId who_added_again(Expression expression, ChunkContribution twice) const;

   private:
    struct SumExpression {
        Expression left = kUnwritten;
        Expression right = kUnwritten;
        EventId maker = kNoEvent;
    };

    [[nodiscard]] Rank rank_of(Expression input) const { return (input - 1) / input_chunks_; }
    [[nodiscard]] bool is_input(Expression expression) const { return expression < first_sum_; }
    [[nodiscard]] const SumExpression& sum_at(Expression expression) const {
        return sums_[static_cast<std::size_t>(expression - first_sum_)];
    }
    [[nodiscard]] bool contains(Expression expression, Expression input) const;
    /// Returns the entry of a sum of two operands; kUnwritten there: a free entry.
    [[nodiscard]] Expression& known(Expression left, Expression right);
    /// Returns the index of that entry in others_.
    [[nodiscard]] std::size_t slot_of(Expression left, Expression right) const;
    void grow();

    int input_chunks_;
    Expression first_sum_;
    std::vector<SumExpression> sums_;
    bool has_repeated_sums_ = false;
    // The first sum by right operand. It is usually the only one, and was made at about the same
    // time as the operand, so that a lookup hits the cache.
    std::vector<Expression> first_of_;
    std::vector<Expression> others_;  // hash table by operands; kUnwritten: empty
    std::size_t count_of_others_ = 0;
};

}  // namespace pccl::schedule
