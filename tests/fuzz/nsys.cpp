// An export of nsys, as the only file of a job. The input is the file itself, or SQL that writes
// it: damaged bytes test what SQLite lets through, damaged SQL what the tables may hold. As
// trace.cpp, the import is made into programs and checked.
#include <fcntl.h>
#include <filesystem>

#include "profiles/error.h"
#include "profiles/trace/import.h"
#include "profiles/trace/replay.h"
#include "profiles/trace/sqlite_rows.h"
#include "profiles/workload/workload_check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/trace/sqlite_text.h"

namespace {

// A file on a file system, since SQLite resolves the links under /proc.
class DiskFile {
 public:
  DiskFile() {
    std::string name = (std::filesystem::temp_directory_path() / "ghostrank-fuzz-XXXXXX").string();
    const ghostrank::Fd fd(mkstemp(name.data()));
    ghostrank::fuzz::require(fd.is_open());
    path_ = name;
  }
  ~DiskFile() { std::filesystem::remove(path_); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  const std::string& with(std::string_view input) const {
    using namespace ghostrank;
    if (!input.starts_with(kSqliteMark.substr(0, 6))) {
      test::write_sqlite(path_, std::string(input));
      return path_;
    }
    const Fd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    fuzz::require(write(fd.get(), input.data(), input.size()) ==
                  static_cast<ssize_t>(input.size()));
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const DiskFile file;
  try {
    const Trace trace = import_trace({file.with(fuzz::text_of(data, size))}, "nsys", 0);
    ++fuzz::accepted;
    const int ranks = ranks_named(trace);
    summary_of(trace, ranks);
    if (ranks > 4096) return 0;  // a short text may stand for a million ranks: slow, but right
    check_workload(replay(trace, {ranks, {}}).workload);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
