// A controller's messages as gRPC carries them. Threading: pure functions.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <string>
#include <vector>

#include "switch/controller/messages.h"

namespace ghostrank::switchml {

inline grpc::ByteBuffer buffer_of(const Fields& fields) {
  const grpc::Slice bytes(message_of(fields));
  return grpc::ByteBuffer(&bytes, 1);
}

inline std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& s : slices)
    text.append(reinterpret_cast<const char*>(s.begin()), s.size());
  return text;
}

}  // namespace ghostrank::switchml
