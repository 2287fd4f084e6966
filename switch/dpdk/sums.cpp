#include "switch/dpdk/sums.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace ghostrank::dpdk {
namespace {

using Instruction = std::vector<std::string>;  // its words

Instruction instruction_in(const std::string& line) {
  std::istringstream in(line);
  Instruction words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool is(const Instruction& w, const char* op, std::size_t words) {
  return w.size() == words && w[0] == op;  // a label adds words or comes first
}

// Bits of every "h.NAME.FIELD" and "m.FIELD".
std::map<std::string, std::uint32_t> widths_of(const Spec& spec) {
  std::map<std::string, std::uint32_t> bits;
  const auto add = [&](const std::string& prefix, const std::string& type) {
    const SpecStruct* fields = spec.find_struct(type);
    if (fields == nullptr) return;
    for (const SpecField& f : fields->fields) bits[prefix + f.name] = f.bits;
  };
  add("m.", spec.metadata);
  for (const SpecHeader& h : spec.headers) add("h." + h.name + ".", h.type);
  return bits;
}

// All instruction lists of a program: that of apply, and one per action.
std::vector<std::vector<std::string>*> lists_of(Spec& spec) {
  std::vector<std::vector<std::string>*> lists{&spec.instructions};
  for (SpecAction& a : spec.actions) lists.push_back(&a.instructions);
  return lists;
}

// The width of each register array whose cells are only moved to and from fields of one width.
std::map<std::string, std::uint32_t> widths_of_registers(
    Spec& spec, const std::map<std::string, std::uint32_t>& fields) {
  std::map<std::string, std::set<std::uint32_t>> seen;
  const auto width = [&](const std::string& operand) {
    const auto found = fields.find(operand);
    return found == fields.end() ? 0 : found->second;
  };
  for (const auto* list : lists_of(spec)) {
    for (const std::string& line : *list) {
      Instruction w = instruction_in(line);
      if (w.size() > 2 && w[1] == ":") w.erase(w.begin(), w.begin() + 2);
      if (is(w, "regrd", 4)) seen[w[2]].insert(width(w[1]));
      if (is(w, "regwr", 4)) seen[w[1]].insert(width(w[3]));
      if (w.size() > 1 && (w[0] == "regadd" || w[0] == "regprefetch")) seen[w[1]].insert(0);
    }
  }
  std::map<std::string, std::uint32_t> one;
  for (const auto& [name, bits] : seen) {
    if (bits.size() == 1 && *bits.begin() != 0) one[name] = *bits.begin();
  }
  return one;
}

struct Facts {
  std::map<std::string, std::uint32_t> fields, registers;
  std::set<std::string> kept;  // carriers that are read later, so their sums stay as they are
};

// The shortened sum that begins at `at`; empty if none begins there. `carrier`: the field that held
// the register's value.
std::vector<std::string> shortened(const std::vector<std::string>& list, std::size_t at,
                                   const Facts& facts, std::string& carrier) {
  if (at + 2 >= list.size()) return {};
  const Instruction read = instruction_in(list[at]), add = instruction_in(list[at + 1]),
                    write = instruction_in(list[at + 2]);
  if (!is(read, "regrd", 4) || !is(add, "add", 3) || !is(write, "regwr", 4)) return {};
  const std::string &t = read[1], &r = read[2], &i = read[3];
  const auto width = facts.registers.find(r);
  const auto as_wide = [&](const std::string& operand) {
    const auto found = facts.fields.find(operand);
    return found != facts.fields.end() && found->second == width->second;
  };
  if (width == facts.registers.end() || write[1] != r || write[2] != i || write[3] != add[1] ||
      i == t || i == add[1] || !as_wide(t) || !t.starts_with("m.") || facts.kept.contains(t))
    return {};
  carrier = t;
  if (add[1] == t && add[2] != t && as_wide(add[2]))
    return {"regadd " + r + " " + i + " " + add[2]};
  if (add[2] == t && add[1] != t && as_wide(add[1]))
    return {"regadd " + r + " " + i + " " + add[1], "regrd " + add[1] + " " + r + " " + i};
  return {};
}

std::vector<std::string> shorten(const std::vector<std::string>& list, const Facts& facts,
                                 std::set<std::string>& carriers, int& sums) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < list.size();) {
    std::string carrier;
    const std::vector<std::string> now = shortened(list, at, facts, carrier);
    if (now.empty()) {
      out.push_back(list[at++]);
      continue;
    }
    out.insert(out.end(), now.begin(), now.end());
    carriers.insert(carrier);
    at += 3;
    ++sums;
  }
  return out;
}

// Whether an instruction reads fields without naming each of them.
bool reads_more_than_it_says(Spec& spec) {
  for (const auto* list : lists_of(spec)) {
    for (const std::string& line : *list) {
      for (const std::string& word : instruction_in(line)) {
        if (word == "hash" || word == "learn" || word == "extern" || word == "selector")
          return true;
      }
    }
  }
  return false;
}

// Whether `field` is read anywhere before it is written in the same run of instructions. A run ends
// at labels, jumps and tables. An instruction counts as a reader of its first operand unless it
// only writes it.
bool read_unwritten(Spec& spec, const std::string& field) {
  for (const auto* list : lists_of(spec)) {
    bool written = false;
    for (const std::string& line : *list) {
      Instruction w = instruction_in(line);
      if (w.size() > 2 && w[1] == ":") {
        written = false;
        w.erase(w.begin(), w.begin() + 2);
      }
      const bool writes = w.size() > 2 && w[1] == field && (w[0] == "mov" || w[0] == "regrd");
      const auto first = w.begin() + (writes ? 2 : 1);
      if (std::find(first, w.end(), field) != w.end() && !written) return true;
      if (writes) written = true;
      if (w[0].starts_with("jmp") || w[0] == "table") written = false;
    }
  }
  // A table reads its keys.
  return std::any_of(spec.tables.begin(), spec.tables.end(), [&](const SpecTable& t) {
    return std::any_of(t.keys.begin(), t.keys.end(),
                       [&](const SpecKey& k) { return k.field == field; });
  });
}

}  // namespace

int shorten_sums(Spec& spec) {
  if (reads_more_than_it_says(spec)) return 0;
  Facts facts;
  facts.fields = widths_of(spec);
  facts.registers = widths_of_registers(spec, facts.fields);
  // Shorten all sums first. If a carrier turns out to be read, start again and leave its sums
  // alone.
  for (;;) {
    Spec tried = spec;
    std::set<std::string> carriers;
    int sums = 0;
    for (auto* list : lists_of(tried)) *list = shorten(*list, facts, carriers, sums);
    const std::size_t kept = facts.kept.size();
    for (const std::string& carrier : carriers) {
      if (read_unwritten(tried, carrier)) facts.kept.insert(carrier);
    }
    if (facts.kept.size() > kept) continue;
    spec = std::move(tried);
    return sums;
  }
}

}  // namespace ghostrank::dpdk
