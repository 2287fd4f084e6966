#include "tools/report/expectation.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using test::sample;

TEST(Expectation, IsMetOnTheRightSideOfItsBound) {
  EXPECT_EQ(missed(parse_expectation("step_time.median<0.6"), sample()), "");
  EXPECT_EQ(missed(parse_expectation("traffic.wire_bytes_per_iteration>4095"), sample()), "");
  EXPECT_EQ(missed(parse_expectation("fidelity.critical_lateness<0.005"), sample()), "");
}

TEST(Expectation, SaysWhatCameInstead) {
  EXPECT_EQ(missed(parse_expectation("step_time.median<0.5"), sample()),
            "expected step_time.median < 0.5, got 0.5");
  EXPECT_EQ(missed(parse_expectation("fidelity.critical_lateness>1e-2"), sample()),
            "expected fidelity.critical_lateness > 0.01, got 0.004");
}

TEST(Expectation, OnWhatWasNotMeasuredIsMissed) {
  EXPECT_EQ(missed(parse_expectation("fidelity.run_queue_wait<1"), sample()),
            "expected fidelity.run_queue_wait < 1, got nothing");
}

TEST(Expectation, NamesAPathOfTheResultOrIsRefused) {
  EXPECT_THROW(parse_expectation("step_time.middle<1"), Error);
  EXPECT_THROW(parse_expectation("fidelity<1"), Error);  // not a number
  EXPECT_THROW(parse_expectation("step_time.median=1"), Error);
  EXPECT_THROW(parse_expectation("step_time.median<soon"), Error);
  EXPECT_THROW(parse_expectation("<1"), Error);
}

}  // namespace
}  // namespace ghostrank
