// Attributes of NCCL's XML files, checked. The input is not trusted: malformed input gives
// Error(usage) "FILE:LINE: what is wrong; what to do".
//
// Threading: keeps no state.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <tinyxml2.h>
#include <type_traits>

#include "profiles/error.h"
#include "profiles/input/yaml.h"

namespace ghostrank {

struct NcclXml {
  using Element = tinyxml2::XMLElement;

  std::string file;
  std::string_view remedy;  // "give the file that NCCL_GRAPH_DUMP_FILE wrote"

  [[noreturn]] void fail_at(int line, const std::string& what) const {
    throw Error(file + ':' + std::to_string(line) + ": " + what + "; " + std::string(remedy));
  }

  // The outermost element, which must have this name.
  const Element& parse(tinyxml2::XMLDocument& document, std::string_view text,
                       std::string_view outermost) const {
    if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS)
      fail_at(document.ErrorLineNum(), "this is not XML, or a tag before here is not closed");
    const Element* root = document.RootElement();
    if (!root || std::string_view(root->Name()) != outermost)
      fail_at(1, "the outermost element is not <" + std::string(outermost) + ">");
    return *root;
  }

  std::string attribute(const Element& e, const char* name) const {
    const char* text = e.Attribute(name);
    if (!text) fail_at(e.GetLineNum(), std::string("<") + e.Name() + "> has no attribute " + name);
    return text;
  }

  template <typename Integer = std::int64_t>
  Integer integer(const Element& e, const char* name, std::type_identity_t<Integer> least,
                  std::type_identity_t<Integer> most, int base = 10) const {
    const std::string text = attribute(e, name);
    std::string_view digits = text;
    if (base == 16 && (digits.starts_with("0x") || digits.starts_with("0X")))
      digits.remove_prefix(2);
    Integer value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error != std::errc{} || stop != end || value < least || value > most)
      fail_at(e.GetLineNum(), std::string(name) + " is " + quote(text) + ", not a number from " +
                                  std::to_string(least) + " to " + std::to_string(most));
    return value;
  }
  template <typename Integer = std::int64_t>
  Integer integer_or(const Element& e, const char* name, std::type_identity_t<Integer> otherwise,
                     std::type_identity_t<Integer> least, std::type_identity_t<Integer> most,
                     int base = 10) const {
    return e.Attribute(name) ? integer<Integer>(e, name, least, most, base) : otherwise;
  }

  double real(const Element& e, const char* name) const {
    constexpr double kMost = 1e6;
    const std::string text = attribute(e, name);
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size() || !(value >= 0) || value > kMost)
      fail_at(e.GetLineNum(),
              std::string(name) + " is " + quote(text) + ", not a number from 0 to 1e6");
    return value;
  }
};

}  // namespace ghostrank
