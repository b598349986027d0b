// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/lined_json.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"

namespace pccl::capsule::mscclpp {
namespace {

/// Iterator over the characters of a text that counts lines.
class CountedText {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountedText(const char* at, int& line) : at_(at), line_(&line) {}
    reference operator*() const { return *at_; }
    CountedText& operator++() {
        if (*at_++ == '\n') ++*line_;
        return *this;
    }
    bool operator==(const CountedText& other) const { return at_ == other.at_; }

   private:
    const char* at_;
    int* line_;
};

}  // namespace

/// SAX handler that builds the values. (json::parse() with a callback scans a whole list whenever
/// an object in it ends.)
class LinedJson::Builder : public nlohmann::json_sax<json> {
   public:
    explicit Builder(LinedJson& made) : made_(made) {}

    Status build(std::string_view text, std::string_view file) {
        const CountedText begin(text.data(), line_);
        const CountedText end(text.data() + text.size(), line_);
        if (json::sax_parse(begin, end, this) && made_.root_.is_object()) return Status::ok();
        return Status::invalid_argument(concat(file, ":", line_, ": this is no JSON object", why_));
    }

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t& /*text*/) override {
        return add(value);
    }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t& value) override { return add(std::move(value)); }
    bool key(string_t& name) override {
        key_ = std::move(name);
        return true;
    }
    bool start_object(std::size_t /*members*/) override {
        if (!open(json::object())) return false;
        made_.lines_[open_.back()->get_ptr<const json::object_t*>()] = line_;
        if (made_.lines_.size() > kMostObjects) why_ = concat(" of at most ", kMostObjects);
        return why_.empty();
    }
    bool start_array(std::size_t /*elements*/) override { return open(json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                     const nlohmann::detail::exception& /*what*/) override {
        return false;
    }

   private:
    bool add(json value) {
        if (open_.empty())
            made_.root_ = std::move(value);
        else if (open_.back()->is_array())
            open_.back()->push_back(std::move(value));
        else
            (*open_.back())[key_] = std::move(value);
        return true;
    }
    bool open(json list) {
        if (open_.size() == kMostDepth) {
            why_ = concat(" nested at most ", kMostDepth, " deep");
            return false;
        }
        add(std::move(list));
        if (open_.empty())
            open_.push_back(&made_.root_);
        else if (json& within = *open_.back(); within.is_array())
            open_.push_back(&within.back());
        else
            open_.push_back(&within[key_]);
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    LinedJson& made_;
    int line_ = 1;
    std::vector<json*> open_;  // incomplete values, each inside the previous one
    std::string key_;
    std::string why_;
};

Result<LinedJson> LinedJson::parse(std::string_view text, std::string_view file) {
    LinedJson made;
    PCCL_TRY(Builder(made).build(text, file));
    return made;
}

int LinedJson::line_of(const json& value) const {
    const auto found = lines_.find(value.get_ptr<const json::object_t*>());
    return value.is_object() && found != lines_.end() ? found->second : 0;
}

}  // namespace pccl::capsule::mscclpp
