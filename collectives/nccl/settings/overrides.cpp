// See nccl/settings/overrides.h. The names and the form are those of NCCL 2.24 and later.
#include "collectives/nccl/settings/overrides.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <stdexcept>
#include <vector>

namespace ghostrank {
namespace {

constexpr std::array<std::string_view, 7> kAlgorithms{
    "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
constexpr std::array<std::string_view, 3> kProtocols{"ll", "ll128", "simple"};

struct Named {
  Func func;
  std::string_view name;
};
constexpr std::array kFunctions{Named{Func::broadcast, "broadcast"}, Named{Func::reduce, "reduce"},
                                Named{Func::all_gather, "allgather"},
                                Named{Func::reduce_scatter, "reducescatter"},
                                Named{Func::all_reduce, "allreduce"}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// The parts between separators, without empty ones, as NCCL does.
std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::erase(parts, "");
  return parts;
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

struct Entry {
  std::string function;  // empty: all
  bool all_but = false;
  std::vector<std::string> names;
};

std::vector<Entry> entries(const char* variable, const std::string& text,
                           std::span<const std::string_view> known) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(std::string(variable) + "=" + text + ": " + why);
  };
  std::vector<Entry> list;
  for (const std::string& part : split_at(lower(text), ';')) {
    Entry entry;
    const std::vector<std::string> halves = split_at(part, ':');
    if (halves.empty() || halves.size() > 2) refuse("expected function:list, as in allreduce:tree");
    if (halves.size() == 2) {
      entry.function = halves.front();
      const auto same = [&](const Named& f) { return f.name == entry.function; };
      if (std::none_of(kFunctions.begin(), kFunctions.end(), same))
        refuse("there is no function '" + entry.function +
               "'; known are allreduce, allgather, reducescatter, broadcast and reduce");
    } else if (!list.empty()) {
      refuse("only the first entry may lack its function");
    }
    std::string names = halves.back();
    entry.all_but = names.starts_with('^');
    if (entry.all_but) names.erase(0, 1);
    entry.names = split_at(names, ',');
    if (entry.names.empty()) refuse("an entry names nothing");
    for (const std::string& name : entry.names)
      if (std::find(known.begin(), known.end(), name) == known.end())
        refuse("there is no '" + name + "'; known are " + listed(known));
    list.push_back(std::move(entry));
  }
  return list;
}

NcclSay say(const std::vector<Entry>& list, Func func, std::string_view name) {
  const std::string wanted = lower(name);
  NcclSay result = NcclSay::unsaid;
  for (const Entry& entry : list) {
    const auto is_ours = [&](const Named& f) {
      return f.func == func && (entry.function.empty() || f.name == entry.function);
    };
    if (std::none_of(kFunctions.begin(), kFunctions.end(), is_ours)) continue;
    const bool listed =
        std::find(entry.names.begin(), entry.names.end(), wanted) != entry.names.end();
    result = listed != entry.all_but ? NcclSay::yes : NcclSay::no;
  }
  return result;
}

}  // namespace

void check_overrides(const NcclOverrides& overrides) {
  entries("NCCL_ALGO", overrides.algorithms, kAlgorithms);
  entries("NCCL_PROTO", overrides.protocols, kProtocols);
}

NcclSay nccl_says(const NcclOverrides& overrides, Func func, NcclAlgorithm algorithm) {
  return say(entries("NCCL_ALGO", overrides.algorithms, kAlgorithms), func, name_of(algorithm));
}

NcclSay nccl_says(const NcclOverrides& overrides, Func func, Protocol protocol) {
  return say(entries("NCCL_PROTO", overrides.protocols, kProtocols), func, name_of(protocol));
}

std::string_view name_of(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return "ring";
    case NcclAlgorithm::tree:
      return "tree";
    case NcclAlgorithm::pat:
      return "pat";
    case NcclAlgorithm::nvls_tree:
      return "nvlstree";
    case NcclAlgorithm::nvls:
      return "nvls";
  }
  return "";
}

}  // namespace ghostrank
