// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/path_choice.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace pccl::transport::tcp {
namespace {

/// Pairing in progress.
class Pairing {
   public:
    Pairing(std::span<const sys::Interface> interfaces, std::span<const sys::Address> addresses)
        : interfaces_(interfaces),
          addresses_(addresses),
          has_interface_(interfaces.size()),
          has_address_(addresses.size()) {}

    using Wanted = std::function<bool(bool has_interface, bool has_address)>;
    void pair(const Wanted& wanted, bool in_subnet) {
        for (std::size_t i = 0; i < has_interface_.size(); ++i)
            for (std::size_t a = 0; a < has_address_.size(); ++a)
                if (wanted(has_interface_[i], has_address_[a]) && fits(i, a, in_subnet)) add(i, a);
    }
    [[nodiscard]] std::vector<PathChoice> take() { return std::move(chosen_); }

   private:
    [[nodiscard]] bool fits(std::size_t interface, std::size_t address, bool in_subnet) const {
        const sys::Interface& own = interfaces_[interface];
        const sys::Address& far = addresses_[address];
        return chosen_.size() < kMostPaths && own.address.family() == far.family() &&
               own.address.is_loopback() == far.is_loopback() &&
               (!in_subnet || share_subnet(own, far));
    }
    void add(std::size_t interface, std::size_t address) {
        chosen_.push_back({.interface = interface, .address = address});
        has_interface_[interface] = true;
        has_address_[address] = true;
    }

    std::span<const sys::Interface> interfaces_;
    std::span<const sys::Address> addresses_;
    std::vector<bool> has_interface_;
    std::vector<bool> has_address_;
    std::vector<PathChoice> chosen_;
};

}  // namespace

std::vector<PathChoice> choose_paths(std::span<const sys::Interface> interfaces,
                                     std::span<const sys::Address> addresses) {
    Pairing pairing(interfaces, addresses);
    const auto neither = [](bool interface, bool address) { return !interface && !address; };
    const auto not_both = [](bool interface, bool address) { return !interface || !address; };
    pairing.pair(neither, true);
    pairing.pair(not_both, true);
    pairing.pair(neither, false);
    pairing.pair(not_both, false);
    return pairing.take();
}

bool share_subnet(const sys::Interface& interface, const sys::Address& address) {
    sys::Interface there = interface;
    there.address = address;
    return interface.address.family() == address.family() &&
           sys::subnet_of(there) == sys::subnet_of(interface);
}

std::vector<sys::Interface> one_of_each(std::span<const sys::Interface> interfaces,
                                        const std::string& spec) {
    std::vector<sys::Interface> best;
    for (const sys::Interface& each : interfaces) {
        if (std::ranges::find(best, each.name, &sys::Interface::name) != best.end()) continue;
        std::vector<sys::Interface> own;
        std::ranges::copy_if(interfaces, std::back_inserter(own),
                             [&](const sys::Interface& i) { return i.name == each.name; });
        if (auto found = sys::choose_interface(own, spec); found.is_ok())
            best.push_back(std::move(*found));
    }
    return best;
}

void drop_internal(std::vector<sys::Interface>& interfaces) {
    const auto is_internal = [](const sys::Interface& i) {
        return i.loopback || (i.internal && !i.has_default_route);
    };
    if (!std::ranges::all_of(interfaces, is_internal)) std::erase_if(interfaces, is_internal);
}

}  // namespace pccl::transport::tcp
