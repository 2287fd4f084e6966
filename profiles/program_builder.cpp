#include "profiles/program_builder.h"

namespace ghostrank {

ProgramBuilder::ProgramBuilder(std::vector<std::string> stream_names) {
  program_.streams.resize(stream_names.size());
  program_.stream_names = std::move(stream_names);
}

std::uint32_t ProgramBuilder::label(const std::string& text) {
  const auto [at, added] =
      label_of_.try_emplace(text, static_cast<std::uint32_t>(program_.labels.size()));
  if (added) program_.labels.push_back(text);
  return at->second;
}

void ProgramBuilder::compute(std::size_t stream, const std::string& text, Picoseconds duration) {
  if (duration == 0) return;
  Op op;
  op.kind = Op::Kind::compute;
  op.label = label(text);
  op.duration = duration;
  program_.streams.at(stream).push_back(op);
}

void ProgramBuilder::all_reduce(std::size_t stream, const std::string& text, std::uint16_t group,
                                DataType dtype, std::uint64_t count) {
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::all_reduce;
  op.dtype = dtype;
  op.group = group;
  op.label = label(text);
  op.count = count;
  program_.streams.at(stream).push_back(op);
}

void ProgramBuilder::broadcast(std::size_t stream, const std::string& text, std::uint16_t group,
                               DataType dtype, std::uint64_t count, std::int32_t root) {
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::broadcast;
  op.dtype = dtype;
  op.group = group;
  op.label = label(text);
  op.count = count;
  op.peer = root;
  program_.streams.at(stream).push_back(op);
}

std::uint32_t ProgramBuilder::record(std::size_t stream) {
  Op op;
  op.kind = Op::Kind::record;
  op.event = program_.events++;
  program_.streams.at(stream).push_back(op);
  return op.event;
}

void ProgramBuilder::wait(std::size_t stream, std::uint32_t event) {
  Op op;
  op.kind = Op::Kind::wait;
  op.event = event;
  program_.streams.at(stream).push_back(op);
}

}  // namespace ghostrank
