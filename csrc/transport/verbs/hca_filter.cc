// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/hca_filter.h"

#include <algorithm>
#include <charconv>

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {

Result<HcaFilter> HcaFilter::parse(std::string_view text) {
    HcaFilter filter;
    if (text.starts_with('^')) {
        filter.is_exclusion_ = true;
        text.remove_prefix(1);
    }
    if (text.starts_with('=')) {
        filter.is_exact_ = true;
        text.remove_prefix(1);
    }
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(','), text.size());
        PCCL_ASSIGN_OR_RETURN(HcaName name, parse_name(text.substr(0, end)));
        filter.entries_.push_back(std::move(name));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return filter;
}

Result<HcaFilter::HcaName> HcaFilter::parse_name(std::string_view text) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    HcaName name{.device = std::string(text.substr(0, colon))};
    const std::string_view port = text.substr(std::min(colon + 1, text.size()));
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), name.port);
    const bool has_port = error == std::errc{} && stop == port.data() + port.size() &&
                          name.port >= 1 && name.port <= 255;
    if (!name.device.empty() && (colon == text.size() || has_port)) return name;
    return Status::invalid_argument(concat("PCCL_IB_HCA: \"", text,
                                           "\" is no device; use names such as mlx5, =mlx5_0:1 or "
                                           "^mlx5_3"));
}

bool HcaFilter::takes(std::string_view device, int port) const {
    return entries_.empty() || has(device, port) != is_exclusion_;
}

bool HcaFilter::has(std::string_view device, int port) const {
    return std::ranges::any_of(entries_, [&](const HcaName& name) {
        const bool is_device = is_exact_ ? device == name.device : device.starts_with(name.device);
        return is_device && (name.port == 0 || name.port == port);
    });
}

}  // namespace pccl::transport::verbs
