// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/expressions.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace pccl::schedule {
namespace {

/// Returns a hash in which every bit depends on all of `bits` (the finaliser of SplitMix64: Steele,
/// Lea and Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

}  // namespace

std::string to_string(const ChunkContribution& contribution) {
    return concat("input[", contribution.chunk, "] of rank ", contribution.rank);
}

Expression Expressions::sum(Expression a, Expression b, EventId maker) {
    const auto [left, right] = std::minmax(a, b);
    Expression& made = known(left, right);
    if (made != kUnwritten) {
        has_repeated_sums_ = true;
        return made;
    }
    const Expression sum = first_sum_ + static_cast<Expression>(sums_.size());
    made = sum;
    sums_.push_back({left, right, maker});
    first_of_.push_back(kUnwritten);
    return sum;
}

Expression& Expressions::known(Expression left, Expression right) {
    Expression& first = first_of_[static_cast<std::size_t>(right)];
    if (first == kUnwritten || sum_at(first).left == left) return first;
    if (others_.size() < 2 * (count_of_others_ + 1)) grow();
    Expression& other = others_[slot_of(left, right)];
    if (other == kUnwritten) ++count_of_others_;
    return other;
}

std::size_t Expressions::slot_of(Expression left, Expression right) const {
    const std::uint64_t operands =
        static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint32_t>(right);
    std::size_t slot = mixed(operands) & (others_.size() - 1);
    while (others_[slot] != kUnwritten) {
        const SumExpression& sum = sum_at(others_[slot]);
        if (sum.left == left && sum.right == right) break;
        slot = (slot + 1) & (others_.size() - 1);
    }
    return slot;
}

void Expressions::grow() {
    constexpr std::size_t kFewest = 64;
    const std::vector<Expression> before =
        std::exchange(others_, std::vector(std::max(kFewest, 2 * others_.size()), kUnwritten));
    for (const Expression sum : before)
        if (sum != kUnwritten) others_[slot_of(sum_at(sum).left, sum_at(sum).right)] = sum;
}

std::vector<ChunkContribution> Expressions::contributions(Expression expression, int limit) const {
    std::vector<ChunkContribution> found;
    std::vector<Expression> left{expression};
    while (!left.empty() && std::cmp_less(found.size(), limit)) {
        const Expression next = left.back();
        left.pop_back();
        if (is_input(next)) {
            found.push_back({(next - 1) / input_chunks_, (next - 1) % input_chunks_});
        } else {
            left.push_back(sum_at(next).left);
            left.push_back(sum_at(next).right);
        }
    }
    return found;
}

ChunkContribution Expressions::one_of(Expression expression) const {
    while (!is_input(expression)) expression = sum_at(expression).left;
    return {(expression - 1) / input_chunks_, (expression - 1) % input_chunks_};
}

bool Expressions::contains(Expression expression, Expression input) const {
    std::unordered_set<Expression> seen;
    std::vector<Expression> left{expression};
    while (!left.empty()) {
        const Expression next = left.back();
        left.pop_back();
        if (next == input) return true;
        if (is_input(next) || !seen.insert(next).second) continue;
        left.push_back(sum_at(next).left);
        left.push_back(sum_at(next).right);
    }
    return false;
}

std::string Expressions::written(Expression expression) const {
    constexpr Expression kPlus = -1;
    constexpr Expression kEnd = -2;
    std::string text;
    std::vector<Expression> left{expression};
    while (!left.empty()) {
        const Expression next = left.back();
        left.pop_back();
        if (next == kPlus || next == kEnd) {
            text += next == kPlus ? '+' : ')';
        } else if (is_input(next)) {
            append(text, rank_of(next));
        } else {
            const bool is_outer = next == expression;
            if (!is_outer) text += '(';
            if (!is_outer) left.push_back(kEnd);
            // The order is free; a leading sum is more readable.
            auto [first, then] = std::pair(sum_at(next).left, sum_at(next).right);
            if (is_input(first) && !is_input(then)) std::swap(first, then);
            left.insert(left.end(), {then, kPlus, first});
        }
    }
    return text;
}

EventId Expressions::who_added_again(Expression expression, ChunkContribution twice) const {
    const Expression wanted = input(twice);
    while (!is_input(expression)) {
        const SumExpression& sum = sum_at(expression);
        const bool in_left = contains(sum.left, wanted);
        if (in_left && contains(sum.right, wanted)) return sum.maker;
        expression = in_left ? sum.left : sum.right;
    }
    return kNoEvent;
}

}  // namespace pccl::schedule
