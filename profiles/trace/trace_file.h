// The bytes of a trace, gzip or not; the only place of the profiles that sees zlib.
//
// Input is not trusted: a file that ends too early, or that unpacks to more than kMaxUnpackedBytes,
// is refused. Threading: one thread.
#pragma once

#include <cstddef>
#include <string>

namespace ghostrank {

inline constexpr std::size_t kMaxUnpackedBytes = std::size_t{8} << 30;

// Reads a file piece by piece.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path);  // throws Error(usage)
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Up to `size` bytes; 0: the end. Throws Error(usage) with the place.
  std::size_t read(char* to, std::size_t size);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  void* file_ = nullptr;
  std::size_t taken_ = 0;
};

std::string read_trace_file(const std::string& path);

// The first bytes, as many as there are up to `size`.
std::string trace_head(const std::string& path, std::size_t size);

}  // namespace ghostrank
