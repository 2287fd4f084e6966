// The .spec that p4c-dpdk writes, which describes a pipeline of DPDK's SWX as text. We read it
// ourselves, because the loader in Debian's DPDK (22.11) needs a compiler, and because DPDK
// silently accepts much that then goes wrong.
//
//   struct N { bit<W> field ... }        header N instanceof S        metadata instanceof S
//   regarray N size S initval V          action N args none|instanceof S { instructions }
//   table N { key {...} actions {...} default_action A args none [const] size S }
//   apply { instructions }
//
// parse_spec() refuses, with the line: unknown words and instructions; fields that are not whole
// bytes or longer than 64 bits; headers and metadata of more than 255 bytes (operands hold the
// offset in 8 bits); more than 256 register arrays or 64 headers; instructions of more than 16
// words; names that are not declared.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank::dpdk {

struct SpecField {
  std::string name;
  std::uint32_t bits = 0;
};
struct SpecStruct {
  std::string name;
  std::vector<SpecField> fields;
  std::uint32_t bytes() const;
};
struct SpecHeader {
  std::string name, type;
};
struct SpecRegisters {
  std::string name;
  std::uint32_t size = 0;
  std::uint64_t initial = 0;
};
struct SpecAction {
  std::string name, type;  // type: struct of its arguments; empty: no arguments
  std::vector<std::string> instructions;
};
enum class SpecMatch : std::uint8_t { exact, wildcard, lpm };
struct SpecKey {
  std::string field;  // "h.ipv4.dst", "m.slot"
  SpecMatch match = SpecMatch::exact;
};
struct SpecTableAction {
  std::string name;
  bool in_table = true, as_default = true;
};
struct SpecTable {
  std::string name;
  std::vector<SpecKey> keys;
  std::vector<SpecTableAction> actions;
  std::string default_action, default_arguments;
  bool default_is_const = false;
  std::uint32_t size = 0;
};
struct Spec {
  std::vector<SpecStruct> structs;
  std::vector<SpecHeader> headers;
  std::string metadata;
  std::vector<SpecRegisters> registers;
  std::vector<SpecAction> actions;
  std::vector<SpecTable> tables;
  std::vector<std::string> instructions;

  const SpecStruct* find_struct(std::string_view name) const;
  const SpecTable* find_table(std::string_view name) const;
};

// Throws std::runtime_error "NAME:LINE: what; what to do".
Spec parse_spec(std::string_view text, const std::string& name);

}  // namespace ghostrank::dpdk
