#include "lockstep/base/host_list.h"

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

struct HostCase {
  const char* text;
  const char* hosts;
};

TEST(HostList, IsExpandedAsScontrolDoes) {
  for (const auto& [text, hosts] : std::vector<HostCase>{
           {"node1", "node1"},
           {"node[01-03,07]", "node01 node02 node03 node07"},
           {"a,b[1-2],c", "a b1 b2 c"},
           {"n[9-11]", "n9 n10 n11"},
           {"n[099-101]", "n099 n100 n101"},
           {"rack[1-2]n[0-1]", "rack1n0 rack1n1 rack2n0 rack2n1"},
           {"gpu[5]-ib.cluster.org", "gpu5-ib.cluster.org"},
           {"10.0.0.[1-2]", "10.0.0.1 10.0.0.2"}}) {
    EXPECT_EQ(base::join(base::expand_host_list(text), " "), hosts) << text;
  }
}

TEST(HostList, RefusesOtherTexts) {
  for (const char* text :
       {"", ",", "a,", "a[1-2", "a1-2]", "a[[1]]", "a[]", "a[2-1]", "a[x]",
        "a[1-]", "a[-1]", "a[1-99999999999999999999]", "a[0-65536]",
        "a[0-999][0-999]", "a[1-60000],b[1-60000]"}) {
    EXPECT_THROW(base::expand_host_list(text), ConfigError) << text;
  }
}

TEST(TaskCounts, AreExpanded) {
  EXPECT_EQ(base::expand_task_counts("2(x3),1"),
            (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(base::expand_task_counts("4"), std::vector<int>{4});
  for (const char* text :
       {"", "2(x3", "(x3)", "2(x)", "0", "2(x99999999)", "a", "2,,1"}) {
    EXPECT_THROW(base::expand_task_counts(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace lockstep
