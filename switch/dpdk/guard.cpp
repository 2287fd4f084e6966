#include "switch/dpdk/guard.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ghostrank::dpdk {
namespace {

constexpr std::string_view kMarks = "marks_marks";
// The program reads its cell of marks, and later counts what became of the packet.
constexpr std::string_view kReadsMarks =
    "regrd m.local_metadata_before marks_marks m.local_metadata_at";
constexpr std::string_view kCounts = " : regadd job_counters_0 m.local_metadata_job 1";

// In place of kReadsMarks. `number`: the packet's, plus kBegun; `mine`, `theirs`: those of the
// rounds of its set and of the slot's other set. A cell of marks has missing workers from bit 32
// on, and all bits of (cell | others) are set where its worker's mark is. Numbers are compared
// modulo 2^32: one is before another if their difference has bit 31.
constexpr const char* kGuard[] = {
    "jmplt GUARD_PASS m.local_metadata_again 0x80000000",
    "xor m.local_metadata_again 0x80000000",
    "mov m.guard_number h.switchml.id",
    "or m.guard_number 0x100000000",
    "regrd m.guard_mine guard_numbers m.local_metadata_at",
    "jmpeq GUARD_SAME m.guard_mine m.guard_number",

    // Another round than the set's last: old, if it is before that one.
    "jmplt GUARD_OTHER_SET m.guard_mine 0x100000000",
    "mov m.guard_work m.guard_number",
    "sub m.guard_work m.guard_mine",
    "and m.guard_work 0x80000000",
    "jmpneq GUARD_OLD m.guard_work 0x0",
    // Old, if it is before the other set's round, where the worker has been heard already.
    "GUARD_OTHER_SET : regrd m.guard_work guard_numbers m.local_metadata_other",
    "jmplt GUARD_NEW m.guard_work 0x100000000",
    "mov m.guard_mine m.guard_number",
    "sub m.guard_mine m.guard_work",
    "and m.guard_mine 0x80000000",
    "jmpeq GUARD_NEW m.guard_mine 0x0",
    "regrd m.guard_work marks_marks m.local_metadata_other",
    "or m.guard_work m.local_metadata_others",
    "jmpeq GUARD_OLD m.guard_work 0xFFFFFFFFFFFFFFFF",
    // The set's round begins anew.
    "GUARD_NEW : regwr guard_numbers m.local_metadata_at m.guard_number",
    "regwr marks_marks m.local_metadata_at 0x0",
    "jmp GUARD_LEAVE",

    // The set's own round: old, if it is over without this worker, or before the other set's.
    "GUARD_SAME : regrd m.guard_work marks_marks m.local_metadata_at",
    "jmpgt GUARD_SAME_OTHER m.guard_work 0xFFFFFFFF",
    "or m.guard_work m.local_metadata_others",
    "jmpneq GUARD_OLD m.guard_work 0xFFFFFFFFFFFFFFFF",
    "GUARD_SAME_OTHER : regrd m.guard_work guard_numbers m.local_metadata_other",
    "jmplt GUARD_LEAVE m.guard_work 0x100000000",
    "mov m.guard_mine m.guard_number",
    "sub m.guard_mine m.guard_work",
    "and m.guard_mine 0x80000000",
    "jmpeq GUARD_LEAVE m.guard_mine 0x0",
    "regrd m.guard_work marks_marks m.local_metadata_other",
    "or m.guard_work m.local_metadata_others",
    "jmpeq GUARD_OLD m.guard_work 0xFFFFFFFFFFFFFFFF",

    // The worker leaves the other set's round: if that is unfinished, it is over.
    "GUARD_LEAVE : regrd m.guard_work marks_marks m.local_metadata_other",
    "jmplt GUARD_PASS m.guard_work 0x100000000",
    "or m.guard_work m.local_metadata_others",
    "jmpneq GUARD_PASS m.guard_work 0xFFFFFFFFFFFFFFFF",
    "regwr marks_marks m.local_metadata_other 0x0",
    "jmp GUARD_PASS",

    "GUARD_OLD : add m.local_metadata_job 0x1",
    "mov m.local_metadata_before 0x0",
    "mov m.local_metadata_seen 0xFFFFFFFFFFFFFFFF",
};

}  // namespace

bool add_guard(Spec& spec) {
  auto& code = spec.instructions;
  const auto reads = std::find(code.begin(), code.end(), kReadsMarks);
  const auto counts = std::find_if(reads, code.end(),
                                   [](const std::string& line) { return line.ends_with(kCounts); });
  const auto marks = std::find_if(spec.registers.begin(), spec.registers.end(),
                                  [](const SpecRegisters& r) { return r.name == kMarks; });
  const auto fields = std::find_if(spec.structs.begin(), spec.structs.end(),
                                   [&](const SpecStruct& s) { return s.name == spec.metadata; });
  if (reads == code.end() || counts == code.end() || marks == spec.registers.end() ||
      fields == spec.structs.end())
    return false;
  const std::string counting = counts->substr(0, counts->size() - kCounts.size());
  for (const char* field : {"guard_number", "guard_mine", "guard_work"})
    fields->fields.push_back({field, 64});
  spec.registers.push_back({std::string(kGuardNumbers), marks->size, 0});
  std::vector<std::string> lines(std::begin(kGuard), std::end(kGuard));
  lines.push_back("jmp " + counting);
  *reads = "GUARD_PASS : " + *reads;
  code.insert(reads, lines.begin(), lines.end());
  return true;
}

}  // namespace ghostrank::dpdk
