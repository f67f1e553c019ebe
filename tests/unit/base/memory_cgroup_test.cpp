#include "lockstep/base/memory_cgroup.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

base::CgroupFiles files_in(const TempDir& folder) {
  return {.membership = folder.path() / "cgroup",
          .root = folder.path() / "root"};
}

void write(const TempDir& folder, const std::string& name,
           const std::string& text) {
  std::filesystem::create_directories((folder.path() / name).parent_path());
  folder.write(name, text);
}

TEST(MemoryCgroup, ReadsVersion2) {
  const TempDir folder;
  write(folder, "cgroup", "0::/user/job\n");
  write(folder, "root/user/memory.max", "1048576\n");
  write(folder, "root/user/job/memory.max", "max\n");
  write(folder, "root/user/job/memory.events",
        "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n");
  const base::MemoryCgroup group(files_in(folder));
  EXPECT_EQ(group.num_oom_kills(), 2);
  EXPECT_EQ(group.limit_bytes(), 1048576) << "the limit of the group above";
}

TEST(MemoryCgroup, ReadsVersion1BesideVersion2) {
  const TempDir folder;
  write(folder, "cgroup", "4:memory:/job\n1:cpu,cpuacct:/other\n0::/\n");
  write(folder, "root/memory/job/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  write(folder, "root/memory/job/memory.stat",
        "cache 0\nhierarchical_memory_limit 2097152\n");
  const base::MemoryCgroup group(files_in(folder));
  EXPECT_EQ(group.num_oom_kills(), 5);
  EXPECT_EQ(group.limit_bytes(), 2097152);
}

TEST(MemoryCgroup, NoLimitOfVersion1IsNone) {
  const TempDir folder;
  write(folder, "cgroup", "4:memory:/\n");
  write(folder, "root/memory/memory.oom_control", "oom_kill 0\n");
  write(folder, "root/memory/memory.stat",
        "hierarchical_memory_limit 9223372036854771712\n");
  const base::MemoryCgroup group(files_in(folder));
  EXPECT_EQ(group.num_oom_kills(), 0);
  EXPECT_FALSE(group.limit_bytes());
}

// Docker mounts the group itself, and /proc names it as the host does.
TEST(MemoryCgroup, FindsItselfAtTheRootOfAContainersMount) {
  const TempDir folder;
  write(folder, "cgroup", "0::/docker/0123\n");
  write(folder, "root/memory.events", "oom_kill 1\n");
  write(folder, "root/memory.max", "4096\n");
  const base::MemoryCgroup group(files_in(folder));
  EXPECT_EQ(group.num_oom_kills(), 1);
  EXPECT_EQ(group.limit_bytes(), 4096);
}

TEST(MemoryCgroup, KnowsNothingWhereTheKernelShowsNothing) {
  const TempDir folder;
  const base::MemoryCgroup group(files_in(folder));
  EXPECT_FALSE(group.num_oom_kills());
  EXPECT_FALSE(group.limit_bytes());
}

}  // namespace
}  // namespace lockstep
