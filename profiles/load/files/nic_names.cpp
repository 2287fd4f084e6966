#include "profiles/load/files/nic_names.h"

#include <string>

namespace ghostrank {

std::optional<NamedNics> nics_named(std::string_view name) {
  if (name.size() < 2 || name[0] != 'n') return std::nullopt;
  std::string_view rest = name.substr(1);
  const auto number = [&]() -> std::optional<int> {
    std::size_t digits = 0;
    while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') ++digits;
    if (digits == 0 || digits > 6) return std::nullopt;
    const int value = std::stoi(std::string(rest.substr(0, digits)));
    rest.remove_prefix(digits);
    return value;
  };
  const std::optional<int> first = number();
  if (!first) return std::nullopt;
  NamedNics out{*first, *first, std::nullopt};
  if (rest.starts_with("-")) {
    rest.remove_prefix(1);
    const std::optional<int> last = number();
    if (!last) return std::nullopt;
    out.last_node = *last;
  }
  if (rest.starts_with(".nic")) {
    rest.remove_prefix(4);
    out.nic = number();
    if (!out.nic) return std::nullopt;
  }
  return rest.empty() ? std::optional(out) : std::nullopt;
}

}  // namespace ghostrank
