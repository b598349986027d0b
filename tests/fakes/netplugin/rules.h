// SPDX-License-Identifier: Apache-2.0

// What the plug-in is to do wrong, as a text: "seed=3,null=40,fail=isend:5".
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <string_view>

namespace pccl::fakes::netplugin {

/// What a call is to do.
enum class Act : std::uint8_t { kWork, kFail, kReturnNull };

/// Rules of this process. Thread-safe.
///
///     seed=N          of what is drawn
///     null=PERCENT    connect, accept, isend, irecv return null so often, though they could work
///     fail=CALL:N     the Nth call of CALL fails, and all later ones
///     block=CALL:N    the Nth call of CALL does not return, until the rules change
///     crash=CALL      the first call of CALL accesses no memory of the process
///     exit=CALL       the first call of CALL ends the process with status 3
///     devices=N       so many devices; 0 and less, too
///     sizes=0         test leaves the sizes alone
///     lie=1           test returns one byte more than came
///     overrun=1       listen writes 40 bytes more than a handle has
///     no_comm=1       listen succeeds without a communicator
///     type=N          device type
///     pointers=N      ptrSupport
///     ports=N         N devices in a row are ports of one card: they have the same guid
///     rails=BASE      the rail of device i is BASE - i
///     slow=N          device N sends 1 KiB in a call at most
///     align=1         regMr takes memory at multiples of 4 KiB alone
class Rules {
   public:
    static Rules& of_process();

    /// Replaces all rules. Calls that block return.
    void set(std::string_view text);
    /// Decides about one call; blocks, crashes or exits here.
    Act decide(const std::string& call, bool may_be_null = false);
    /// Returns how often a function was called since set().
    long calls(const std::string& call);
    /// Returns the number of a rule.
    long number(const std::string& key, long otherwise);

   private:
    struct Point {
        std::string call;
        long at = 1;
    };
    static Point point_in(const std::string& text);
    Rules();
    bool is_at(const char* rule, const std::string& call, long count);

    std::mutex mutex_;
    std::map<std::string, std::string> rules_;
    std::map<std::string, long> calls_;
    std::mt19937 random_;
    std::uint64_t generation_ = 0;
};

}  // namespace pccl::fakes::netplugin
