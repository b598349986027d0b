// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/shared_elements.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "csrc/collective/fingerprint.h"
#include "csrc/torch/tensors.h"

namespace pccl::backend {
namespace {

struct Dimension {
    std::int64_t size = 0;
    std::int64_t stride = 0;
};
using Dimensions = std::vector<Dimension>;

/// Returns the dimensions except those of length 1, whose stride has no meaning.
Dimensions dimensions_of(const at::Tensor& tensor) {
    Dimensions dimensions;
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
        if (tensor.size(i) != 1) dimensions.push_back({tensor.size(i), tensor.stride(i)});
    return dimensions;
}

/// Returns the distance from the first location to the end of the last.
std::int64_t extent_of(const Dimensions& dimensions) {
    std::int64_t extent = 1;
    for (const Dimension& each : dimensions) extent += (each.size - 1) * each.stride;
    return extent;
}

/// Calls visit(place) for each location, in elements, until it returns false. Recursive over the
/// dimensions.
template <typename Visit>
bool visit_places(const Dimensions& dimensions, std::size_t from, std::int64_t place,
                  const Visit& visit) {
    if (from == dimensions.size()) return visit(place);
    for (std::int64_t i = 0; i < dimensions[from].size; ++i)
        if (!visit_places(dimensions, from + 1, place + i * dimensions[from].stride, visit))
            return false;
    return true;
}

/// Set of visited locations.
class VisitedPlaces {
   public:
    explicit VisitedPlaces(std::int64_t extent) : taken_(static_cast<std::size_t>(extent)) {}
    /// Returns false where a location is already in the set.
    bool take(const Dimensions& dimensions, std::int64_t begin) {
        return visit_places(dimensions, 0, begin, [this](std::int64_t place) {
            auto taken = taken_[static_cast<std::size_t>(place)];
            const bool is_free = !taken;
            taken = true;
            return is_free;
        });
    }

   private:
    std::vector<bool> taken_;
};

/// Returns whether every element has a location of its own.
bool is_injective(Dimensions dimensions) {
    const Dimensions given = dimensions;
    std::ranges::sort(dimensions, {}, &Dimension::stride);
    std::int64_t inner = 1;  // extent of the dimensions so far
    bool is_nested = true;
    for (const Dimension& each : dimensions) {
        is_nested &= each.stride >= inner;
        inner += (each.size - 1) * each.stride;
    }
    return is_nested || VisitedPlaces(extent_of(given)).take(given, 0);
}

std::uint64_t digest_of_all(const Dimensions& dimensions) {
    std::uint64_t digest = 2;
    for (const Dimension& each : dimensions)
        digest = mixed(mixed(digest, static_cast<std::uint64_t>(each.size)),
                       static_cast<std::uint64_t>(each.stride));
    return digest | 1;
}

/// Returns a digest of the lengths of runs with and without shared memory, which is independent of
/// the shape.
std::uint64_t digest_of_repeats(const Dimensions& dimensions) {
    std::uint64_t digest = 1;
    for (std::size_t i = 0; i < dimensions.size();) {
        const bool repeats = dimensions[i].stride == 0;
        std::uint64_t run = 1;
        for (; i < dimensions.size() && (dimensions[i].stride == 0) == repeats; ++i)
            run *= static_cast<std::uint64_t>(dimensions[i].size);
        digest = mixed(mixed(digest, repeats ? 1 : 0), run);
    }
    return digest | 1;
}

/// Memory of a non-empty tensor.
struct TensorSpan {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    const at::Tensor* tensor = nullptr;
};

std::vector<TensorSpan> spans_of(const std::vector<at::Tensor>& tensors) {
    std::vector<TensorSpan> spans;
    for (const at::Tensor& tensor : tensors) {
        if (tensor.numel() == 0) continue;
        const auto* const begin = static_cast<const std::byte*>(tensor.const_data_ptr());
        const std::int64_t extent = extent_of(dimensions_of(tensor));
        spans.push_back({begin, begin + extent * tensor.element_size(), &tensor});
    }
    return spans;
}

bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

/// Checks tensors with overlapping spans, in memory order.
bool share_places(std::span<const TensorSpan> spans) {
    if (std::ranges::all_of(spans, [](const TensorSpan& each) { return is_dense(*each.tensor); }))
        return true;
    const std::byte* end = nullptr;
    for (const TensorSpan& each : spans) end = std::max(end, each.end);
    const auto element = static_cast<std::int64_t>(spans.front().tensor->element_size());
    VisitedPlaces places((end - spans.front().begin) / element + 1);
    return std::ranges::any_of(spans, [&](const TensorSpan& each) {
        Dimensions dimensions = dimensions_of(*each.tensor);
        std::erase_if(dimensions, [](const Dimension& one) { return one.stride == 0; });
        return !places.take(dimensions, (each.begin - spans.front().begin) / element);
    });
}

/// Returns the first of the elements that share memory.
at::Tensor first_of_shared(at::Tensor part, const at::Tensor& tensor) {
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
        if (tensor.size(i) > 1 && tensor.stride(i) == 0) part = part.narrow(i, 0, 1);
    return part;
}

}  // namespace

SharedElements shared_elements(const at::Tensor& tensor) {
    if (tensor.numel() < 2 || is_dense(tensor)) return {};
    const Dimensions all = dimensions_of(tensor);
    Dimensions moving = all;
    std::erase_if(moving, [](const Dimension& each) { return each.stride == 0; });
    if (!is_injective(moving)) return {.digest = digest_of_all(all), .is_regular = false};
    if (moving.size() == all.size()) return {};
    return {.digest = digest_of_repeats(all)};
}

bool share_memory(const std::vector<at::Tensor>& tensors) {
    std::vector<TensorSpan> spans = spans_of(tensors);
    std::ranges::sort(spans, {}, &TensorSpan::begin);
    for (std::size_t first = 0; first < spans.size();) {
        const std::byte* end = spans[first].end;
        std::size_t behind = first + 1;
        for (; behind < spans.size() && spans[behind].begin < end; ++behind)
            end = std::max(end, spans[behind].end);
        if (behind > first + 1 && share_places(std::span(spans).subspan(first, behind - first)))
            return true;
        first = behind;
    }
    return false;
}

bool repeats_alike(const at::Tensor& stage, const at::Tensor& tensor) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor repeated = first_of_shared(stage, tensor).expand(stage.sizes()).contiguous();
    return at::equal(repeated.view(at::kByte), stage.view(at::kByte));
}

void copy_first_of_shared(const at::Tensor& tensor, const at::Tensor& stage) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    first_of_shared(tensor, tensor).copy_(first_of_shared(stage, tensor));
}

}  // namespace pccl::backend
