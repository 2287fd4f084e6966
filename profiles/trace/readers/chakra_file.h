// Chakra execution traces on the wire: messages of mlcommons/chakra's et_def.proto, versions 0.0.4
// and 1.0.0, each behind its length. Only chakra_file.cpp sees protobuf.
//
// Older schemas have the same file ending; files with fields that these versions lack are refused.
// Units: as in the file (microseconds, bytes). Threading: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

struct ChakraNode {
  enum Type : std::uint8_t { invalid, metadata, load, store, comp, send, recv, coll };
  std::uint64_t id = 0;
  std::string_view name;  // a view of the file's text
  Type type = invalid;
  bool host = false;
  std::uint64_t start_us = 0, duration_us = 0;
  std::vector<std::uint64_t> control, data;  // dependencies
  // Attributes; `has` tells which are present.
  enum Has : std::uint32_t {
    comm_type = 1,
    comm_size = 2,
    comm_src = 4,
    comm_dst = 8,
    group = 16,
    num_ops = 32,
    tensor_size = 64,
    root = 128,
    part_of_dims = 256
  };
  std::uint32_t has = 0;
  std::int64_t values[8] = {};  // by bit number
  std::string_view pg_name;
  std::uint64_t tag = 0;
  std::int64_t track = -1;        // stream of a device, thread of a host
  std::string_view input_values;  // JSON
  std::string_view input_types;   // JSON, or as Python writes it: ['Tensor(float)']
};

struct ChakraHead {
  std::string version;
};

// Calls `node` for every node in the order of the file; the node is valid during the call, and
// `offset` is the byte at which its message begins. Throws Error(usage) with the byte.
ChakraHead read_chakra(const std::string& text, const std::string& path,
                       const std::function<void(const ChakraNode&, std::uint64_t offset)>& node);

// True if a file that begins like this is a Chakra trace. `head` may be cut anywhere.
bool looks_like_chakra(std::string_view head);
bool can_read_chakra();  // true if built with protobuf

}  // namespace ghostrank
