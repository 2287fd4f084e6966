#include "profiles/trace/readers/kineto_groups.h"

#include <algorithm>
#include <numeric>

#include "profiles/input/quantity.h"

namespace ghostrank {

std::optional<NumberList> number_list(const JsonTape& json, const JsonNode& value) {
  NumberList out;
  if (value.kind == JsonNode::Kind::array) {
    for (const JsonNode& one : json.children(value)) {
      if (!one.is_integer() || one.integer < 0) return std::nullopt;
      out.numbers.push_back(one.integer);
    }
    return out;
  }
  const std::string list(value.text);
  constexpr const char* kDigits = "0123456789-";
  for (std::size_t at = list.find_first_of(kDigits); at != std::string::npos;) {
    const std::size_t end = std::min(list.find_first_not_of(kDigits, at), list.size());
    const auto number = parse_integer(list.substr(at, end - at));
    if (!number || *number < 0) return std::nullopt;
    out.numbers.push_back(*number);
    at = list.find_first_of(kDigits, end);
  }
  out.cut = list.find("...") != std::string::npos;
  return out;
}

void KinetoGroups::take_info(const JsonTape& json) {
  const JsonNode* world = json.find(json.root(), "world_size");
  if (world && world->is_integer()) world_ = world->integer;
  const JsonNode* config = json.find(json.root(), "pg_config");
  if (!config || config->kind != JsonNode::Kind::array) return;
  for (const JsonNode& group : json.children(*config)) {
    const JsonNode* name = json.find(group, "pg_name");
    const JsonNode* ranks = json.find(group, "ranks");
    if (!name || name->kind != JsonNode::Kind::string || !ranks) continue;
    auto list = number_list(json, *ranks);
    if (list && !list->cut && !list->numbers.empty())
      ranks_of_[std::string(name->text)] = std::move(list->numbers);
  }
}

std::optional<std::vector<std::int64_t>> KinetoGroups::members(
    const std::string& name, const std::vector<std::int64_t>& first, std::int64_t size) const {
  std::vector<std::int64_t> all;
  if (const auto known = ranks_of_.find(name); known != ranks_of_.end()) {
    all = known->second;
  } else if (size == world_) {
    all.resize(size);
    std::iota(all.begin(), all.end(), 0);
  }
  const bool fits = std::ssize(all) == size && first.size() <= all.size() &&
                    std::equal(first.begin(), first.end(), all.begin());
  return fits ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace ghostrank
