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

TEST(MemoryCgroup, TheTightestRoomIsThatOfTheGroupThatLeavesLeast) {
  const TempDir folder;
  write(folder, "cgroup", "0::/user/job\n");
  write(folder, "root/user/memory.max", "10000\n");
  write(folder, "root/user/memory.current", "9500\n");
  write(folder, "root/user/memory.stat", "anon 9000\ninactive_file 400\n");
  write(folder, "root/user/job/memory.max", "4000\n");
  write(folder, "root/user/job/memory.current", "1000\n");
  write(folder, "root/user/job/memory.events", "oom_kill 0\n");
  const auto room = base::MemoryCgroup(files_in(folder)).tightest_room();
  ASSERT_TRUE(room);
  EXPECT_EQ(room->limit_bytes, 10000);
  EXPECT_EQ(room->used_bytes, 9100);
}

TEST(MemoryCgroup, RoomIsReadFromVersion1) {
  const TempDir folder;
  write(folder, "cgroup", "4:memory:/job\n");
  write(folder, "root/memory/job/memory.oom_control", "oom_kill 0\n");
  write(folder, "root/memory/job/memory.limit_in_bytes",
        "9223372036854771712\n");
  write(folder, "root/memory/job/memory.usage_in_bytes", "3000\n");
  write(folder, "root/memory/job/memory.stat",
        "inactive_file 1\nhierarchical_memory_limit 8000\n"
        "total_inactive_file 500\n");
  const auto room = base::MemoryCgroup(files_in(folder)).tightest_room();
  ASSERT_TRUE(room);
  EXPECT_EQ(room->limit_bytes, 8000) << "of a group above the mount";
  EXPECT_EQ(room->used_bytes, 2500);
}

TEST(MemoryCgroup, KnowsNothingWhereTheKernelShowsNothing) {
  const TempDir folder;
  const base::MemoryCgroup group(files_in(folder));
  EXPECT_FALSE(group.num_oom_kills());
  EXPECT_FALSE(group.limit_bytes());
  EXPECT_FALSE(group.tightest_room());
}

}  // namespace
}  // namespace lockstep
