// How far a transaction is, for those who watch it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"

namespace pccl::cluster {

struct SwitchProgress {
    std::string name;
    /// The name of a Step, "settle", or "wait", for a switch to take back what it was not
    /// confirmed; empty: nothing yet.
    std::string_view doing = {};
    bool is_done = false;  // with that
    Status fault = {};     // why that failed
};

struct Progress {
    /// "prepare", "drain", "commit", "confirm", "roll back", "release".
    std::string_view part;
    std::vector<SwitchProgress> switches;
};

/// Called on the transaction's thread whenever some switch has gone on; returns soon.
using Watch = std::function<void(const Progress&)>;

/// What a transaction tells who watches it. Nothing where nobody does.
class ProgressTeller {
   public:
    ProgressTeller(Watch watch, const std::vector<std::string>& names);

    void begin_part(std::string_view part);
    void begin(std::string_view doing, const std::vector<std::size_t>& who);
    void end(std::size_t who, const Status& status);

   private:
    void tell() const;

    const Watch watch_;
    Progress progress_;
};

}  // namespace pccl::cluster
