// Reading safetensors: https://huggingface.co/docs/safetensors. Needs nlohmann-json (Debian: nlohmann-json3-dev).
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include <parallel/file/file_tensor.hpp>
#include <parallel/meta/nearest.hpp>

namespace parallel::internals {

/// The format in numbers.
namespace safetensors {
inline constexpr std::size_t most_header = 100'000'000;  ///< bytes
inline constexpr std::size_t most_metadata = 0xffff;     ///< strings; the format has no limit
inline constexpr std::string_view metadata_key = "__metadata__";

/// A tensor in few bytes: a file may have a million of them. Its name and shape lie in `Header::words`.
struct Entry {
  std::uint64_t begin = 0, end = 0;  ///< its bytes, from where those of all tensors begin
  std::uint32_t name_at = 0, name_size = 0, shape_at = 0;
  std::uint16_t rank = 0;
  FileDType dtype = FileDType::F32;
};
inline constexpr std::size_t most_dimensions = 0xffff;  ///< the format has no limit

struct Header {
  std::string words{};
  std::vector<Entry> entries{};
  std::map<std::string, std::string, std::less<>> metadata{};
  std::string_view name(const Entry& e) const { return std::string_view(words).substr(e.name_at, e.name_size); }
  /// Seven bits a byte, so that no shape takes more room than it had in the file.
  void add_number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) words.push_back(static_cast<char>(0x80 | (number & 0x7f)));
    words.push_back(static_cast<char>(number));
  }
  std::vector<std::int64_t> shape(const Entry& e) const {
    std::vector<std::int64_t> result(e.rank);
    std::size_t at = e.shape_at;
    for (std::int64_t& size : result)
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(words[at++]);
        size |= static_cast<std::int64_t>(std::uint64_t{byte & 0x7FU} << shift);
        if (byte < 0x80) break;
      }
    return result;
  }
};

/// Takes the header as nlohmann's parser goes through it, and refuses whatever the format has not where it stands: so
/// nothing is nested deeper than the format is, and nothing is held that does not belong to it.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, Header& header) : file_(file), header_(header) {}

  bool null() { return other("null"); }
  bool boolean(bool) { return other("true or false"); }
  bool number_float(double, const std::string& digits) { return other(digits); }
  bool number_integer(std::int64_t number) { return other(std::to_string(number)); }  // negative
  bool number_unsigned(std::uint64_t number) {
    if (in_ == In::shape) {
      if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()} || dimensions_ == most_dimensions)
        throw refused("has a shape that is none");
      header_.add_number(number);
      elements_overflow_ |= __builtin_mul_overflow(elements_, static_cast<std::int64_t>(number), &elements_);
      ++dimensions_;
      return true;
    }
    if (in_ != In::offsets || offsets_ == 2) return other(std::to_string(number));
    (offsets_++ == 0 ? now_.begin : now_.end) = number;
    return true;
  }
  bool string(std::string& text) {
    if (in_ == In::metadata) {
      header_.metadata[key_] = text;
      return true;
    }
    if (in_ != In::tensor || field_ != 0) return other("a string");
    const auto dtype = file_dtype_named(text);
    if (!dtype) throw refused("has a dtype that safetensors has not: " + shortened(text));
    now_.dtype = *dtype;
    return true;
  }
  bool binary(std::vector<std::uint8_t>&) { return other("binary data"); }

  bool start_object(std::size_t) {
    if (in_ == In::nothing) {
      in_ = In::all;
    } else if (in_ == In::all && about_metadata_) {
      in_ = In::metadata;
    } else if (in_ == In::all) {
      in_ = In::tensor;
      seen_ = {};
    } else {
      return other("an object");
    }
    return true;
  }
  bool key(std::string& text) {
    if (in_ == In::metadata) {
      if (header_.metadata.size() == most_metadata)
        throw damaged(file_, "its __metadata__ has more than " + std::to_string(most_metadata) + " strings");
      if (header_.metadata.contains(text)) throw damaged(file_, "its __metadata__ has " + shortened(text) + " twice");
      key_ = text;
      return true;
    }
    if (in_ == In::all) {
      about_metadata_ = text == metadata_key;
      if (about_metadata_ && std::exchange(had_metadata_, true))
        throw damaged(file_, "its header has __metadata__ twice");
      if (about_metadata_) return true;
      now_ = {.name_at = static_cast<std::uint32_t>(header_.words.size()),
              .name_size = static_cast<std::uint32_t>(text.size())};
      header_.words += text;
      return true;
    }
    const auto field = std::find(fields.begin(), fields.end(), text);
    if (field == fields.end())
      throw refused("has a field that safetensors has not, " + shortened(text) +
                    "; expected are dtype, shape and data_offsets");
    field_ = static_cast<std::size_t>(field - fields.begin());
    if (std::exchange(seen_[field_], true)) throw refused("has its " + text + " twice");
    return true;
  }
  bool end_object() {
    if (in_ == In::tensor) finish_tensor();
    in_ = in_ == In::all ? In::nothing : In::all;
    return true;
  }
  bool start_array(std::size_t) {
    if (in_ != In::tensor || field_ == 0) return other("an array");
    in_ = field_ == 1 ? In::shape : In::offsets;
    if (in_ == In::shape) {
      now_.shape_at = static_cast<std::uint32_t>(header_.words.size());
      dimensions_ = 0;
      elements_ = 1;
      elements_overflow_ = false;
    } else {
      offsets_ = 0;
    }
    return true;
  }
  bool end_array() {
    if (in_ == In::shape) now_.rank = static_cast<std::uint16_t>(dimensions_);
    if (in_ == In::offsets && offsets_ != 2) throw refused("has data_offsets that are not two numbers");
    in_ = In::tensor;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) {
    throw damaged(file_, "byte " + std::to_string(8 + at) + ", in its header, is where the header ceases to be JSON");
  }

 private:
  enum class In { nothing, all, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};

  static std::string shortened(const std::string& text) {
    return "'" + (text.size() <= 100 ? text : text.substr(0, 97) + "...") + "'";
  }
  Failure refused(const std::string& why) const {
    return damaged(file_, "the tensor " + shortened(std::string(header_.name(now_))) + " " + why);
  }
  /// What stands there stands in no header.
  bool other(const std::string& what) const {
    switch (in_) {
      case In::nothing:
      case In::all: throw damaged(file_, "its header has " + what + " where tensors are described");
      case In::metadata: throw damaged(file_, "its __metadata__ has " + what + "; expected are strings alone");
      case In::shape: throw refused("has " + what + " in its shape; expected are whole numbers from 0 on");
      case In::offsets: throw refused("has " + what + " in its data_offsets; expected are two whole numbers");
      default: throw refused("has " + what + " as its " + std::string(fields[field_]));
    }
  }
  void finish_tensor() {
    for (std::size_t f = 0; f < fields.size(); ++f)
      if (!seen_[f]) throw refused("has no " + std::string(fields[f]));
    const auto bytes = elements_overflow_ ? std::nullopt : bytes_of(now_.dtype, elements_);
    if (!bytes) throw refused("has a shape of more elements than can be counted, or that do not fill their last byte");
    if (now_.begin > now_.end || now_.end - now_.begin != static_cast<std::uint64_t>(*bytes))
      throw refused("has " + std::to_string(*bytes) + " bytes by its shape and dtype, but its data_offsets are [" +
                    std::to_string(now_.begin) + ", " + std::to_string(now_.end) + "]");
    header_.entries.push_back(now_);
  }
  const std::string& file_;
  Header& header_;
  In in_ = In::nothing;
  bool about_metadata_ = false, had_metadata_ = false, elements_overflow_ = false;
  Entry now_{};
  std::size_t field_ = 0, dimensions_ = 0;
  int offsets_ = 0;
  std::int64_t elements_ = 1;
  std::array<bool, 3> seen_{};
  std::string key_{};
};

}  // namespace safetensors

/// A file of safetensors, mapped. All of the format is checked before anything is believed, and a file that is damaged
/// is refused in a sentence; whether elements are numbers is not looked at. Of a header it takes at most twice the
/// memory, beside metadata and the longest of its strings.
class Safetensors {
 public:
  /// Throws Failure: missing_input where there is no such file, bad_data where it is not safetensors.
  explicit Safetensors(const std::string& file) : in_(std::make_shared<const MappedFile>(file)) {
    const std::size_t size = in_->bytes().size();
    if (size < 8)
      throw damaged(file, "it has " + std::to_string(size) + " bytes; safetensors begin with 8 of a length");
    const auto length = in_->number<std::uint64_t>(0);
    if (length > safetensors::most_header || length > size - 8)
      throw damaged(file, "its header is said to have " + std::to_string(length) + " bytes, but " +
                              (length > size - 8 ? "the file ends before" : "100000000 are the most") +
                              "; it was cut off, or is no safetensors, as a pointer of Git LFS is none: fetch or write "
                              "it again");
    const std::string_view text = in_->text().substr(8, length);
    if (!text.starts_with('{')) throw damaged(file, "byte 8, where its header begins, is no {; is it safetensors?");
    safetensors::HeaderReader reader(in_->file(), header_);
    nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
    check_places(size - 8 - length);
    check_names();
    data_ = 8 + length;
  }

  const std::string& file() const { return in_->file(); }
  /// The bytes before the tensors.
  std::string_view header() const { return in_->text().substr(0, data_); }
  std::size_t size() const { return header_.entries.size(); }
  /// The tensors one behind the other, as they lie in the file.
  FileTensor operator[](std::size_t i) const {
    const safetensors::Entry& e = header_.entries[i];
    return {{std::string(header_.name(e)), e.dtype, header_.shape(e)},
            in_,
            in_->bytes().subspan(data_ + e.begin, e.end - e.begin)};
  }
  bool contains(std::string_view name) const { return find(name) != by_name_.end(); }
  /// Throws Failure(bad_data) where the file has no tensor of that name.
  FileTensor operator[](std::string_view name) const {
    const auto found = find(name);
    if (found != by_name_.end()) return (*this)[std::size_t{*found}];
    std::vector<std::string> known;
    for (const safetensors::Entry& e : header_.entries) known.emplace_back(header_.name(e));
    throw damaged(file(), "it has no tensor " + std::string(name) + ", among its " + std::to_string(size()) +
                              nearest_of(name, std::move(known)));
  }
  FileTensor operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  /// Texts that the file has beside its tensors: by Python's libraries "format": "pt".
  const std::map<std::string, std::string, std::less<>>& metadata() const { return header_.metadata; }

 private:
  /// Tensors cover all bytes behind the header, each once.
  void check_places(std::uint64_t all) {
    auto& entries = header_.entries;
    std::sort(entries.begin(), entries.end(), [](const safetensors::Entry& a, const safetensors::Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t end = 0;
    for (const safetensors::Entry& e : entries) {
      if (e.begin != end)
        throw damaged(file(), "the tensor '" + std::string(header_.name(e)) + "' begins at " + std::to_string(e.begin) +
                                  ", but what is before it ends at " + std::to_string(end));
      end = e.end;
    }
    if (end != all)
      throw damaged(file(), "its tensors end at " + std::to_string(end) + ", but behind its header it has " +
                                std::to_string(all) + " bytes; copy it anew, whole");
  }
  void check_names() {
    by_name_.resize(size());
    std::iota(by_name_.begin(), by_name_.end(), 0U);
    std::sort(by_name_.begin(), by_name_.end(), [this](auto a, auto b) { return name(a) < name(b); });
    for (std::size_t i = 1; i < size(); ++i)
      if (name(by_name_[i - 1]) == name(by_name_[i]))
        throw damaged(file(), "it has two tensors '" + std::string(name(by_name_[i])) + "'");
  }
  std::string_view name(std::uint32_t i) const { return header_.name(header_.entries[i]); }
  std::vector<std::uint32_t>::const_iterator find(std::string_view wanted) const {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), wanted,
                                     [this](std::uint32_t i, std::string_view w) { return name(i) < w; });
    return at != by_name_.end() && name(*at) == wanted ? at : by_name_.end();
  }

  std::shared_ptr<const MappedFile> in_;
  safetensors::Header header_{};
  std::vector<std::uint32_t> by_name_{};
  std::size_t data_ = 0;
};

}  // namespace parallel::internals

namespace parallel {
using internals::Safetensors;
}  // namespace parallel
