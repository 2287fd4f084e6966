// Writes a Program the way a planner thinks of it: append to a stream, mark a point, wait for it.
//
// Labels are interned, events are handed out in order. Threading: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "profiles/program.h"

namespace ghostrank {

class ProgramBuilder {
 public:
  // Streams get their numbers in the order of the names.
  explicit ProgramBuilder(std::vector<std::string> stream_names);

  // Delays of zero are left out: they would only cost the engine an event.
  void compute(std::size_t stream, const std::string& label, Picoseconds duration);
  void all_reduce(std::size_t stream, const std::string& label, std::uint16_t group, DataType dtype,
                  std::uint64_t count);
  void broadcast(std::size_t stream, const std::string& label, std::uint16_t group, DataType dtype,
                 std::uint64_t count, std::int32_t root);
  std::uint32_t record(std::size_t stream);
  void wait(std::size_t stream, std::uint32_t event);

  Program take() { return std::move(program_); }

 private:
  std::uint32_t label(const std::string& text);

  Program program_;
  std::map<std::string, std::uint32_t> label_of_;
};

}  // namespace ghostrank
