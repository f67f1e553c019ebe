// The store of a job as attackers and unlucky neighbours find it.
#include <gtest/gtest.h>
#include <unistd.h>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

ProcessResult run_with_store(const Words& options, const std::string& script) {
  return run(python_job(options, kStoreInPython + script));
}

TEST(JobStore, ListensOnTheLoopbackAddressAlone) {
  const auto result = run_with_store({}, R"(
port = "%04X" % int(os.environ["MASTER_PORT"])
for table in ("/proc/net/tcp", "/proc/net/tcp6"):
    for row in open(table).readlines()[1:]:
        words = row.split()
        address, number = words[1].rsplit(":", 1)
        if number == port and words[3] == "0A":
            print(table, address)
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "/proc/net/tcp 0100007F\n");
}

// What ended 5 of 5 jobs when the port was only reserved.
TEST(JobStore, ItsPortCannotBeStolen) {
  const auto result = run_with_store({}, R"(
for address in ("127.0.0.1", "0.0.0.0"):
    thief = socket.socket()
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        thief.bind((address, int(os.environ["MASTER_PORT"])))
        thief.listen()
        print("stolen")
    except OSError:
        print("refused")
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "refused\nrefused\n");
}

TEST(JobStore, IsAnnouncedAsTorchrunDoes) {
  const auto result =
      run_shell({}, "echo $TORCHELASTIC_USE_AGENT_STORE $MASTER_ADDR");
  EXPECT_EQ(result.out, "True 127.0.0.1\n");
}

// Rank 1 becomes another user, who is not let in. Who is not root cannot, and
// is let in.
TEST(JobStore, AnotherUserIsNotLetIn) {
  const auto result = run_with_store({"--nproc=2"}, R"(
other = os.environ["RANK"] == "1" and os.getuid() == 0
if other:
    os.setuid(65534)
try:
    store = connect()
    store.sendall(b"\x01" + text("/key") + text("forged"))
    store.sendall(b"\x0d" + bytes(4))
    receive(store, 4)
    assert not other, "let in"
except ConnectionError:
    assert other, "refused"
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(contains(result.err,
                     "refused a connection of another user (uid "
                     "65534)"),
            getuid() == 0)
      << result.err;
}

TEST(JobStore, KeysOfTheRanksAreClosedToOtherPrograms) {
  const auto result = run_with_store({}, R"(
store = connect()
store.sendall(b"\x01" + text("/lockstep/0/departed/0") + text("1"))
try:
    store.sendall(b"\x0d" + bytes(4))
    receive(store, 4)
    print("let in")
except ConnectionError:
    print("refused")
)");
  EXPECT_EQ(result.out, "refused\n") << result.err;
  EXPECT_TRUE(contains(result.err, "are for the job's own ranks"))
      << result.err;
}

TEST(JobStore, TheSecretIsInNoEnvironmentAndNoCommandLine) {
  const auto result = run_with_store({}, R"(
fd = int(os.environ["LOCKSTEP_SECRET_FD"])
port, secret = os.pread(fd, 100, 0).split(b"\n", 1)
assert int(port) == int(os.environ["MASTER_PORT"]) and len(secret) == 32
for pid in (os.getpid(), os.getppid()):
    for name in ("environ", "cmdline"):
        data = open(f"/proc/{pid}/{name}", "rb").read()
        assert secret not in data and secret.hex().encode() not in data
print("hidden")
)");
  EXPECT_EQ(result.out, "hidden\n") << result.err;
}

TEST(JobStore, ARestartFindsAnEmptyStoreAtTheSamePort) {
  const auto result = run_with_store({"--max-restarts=1"}, R"(
store = connect()
store.sendall(b"\x04" + text("/count") + struct.pack("<q", 1))
print(os.environ["MASTER_PORT"], struct.unpack("<q", receive(store, 8))[0],
      flush=True)
sys.exit(1 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto lines = sorted_lines(result.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_TRUE(contains(lines[0], " 1"));
}

// Rank 0 leaves; the store is still there for rank 1.
TEST(JobStore, OutlivesRankZero) {
  const auto result = run_with_store({"--nproc=2"}, R"(
store = connect()
if os.environ["RANK"] == "0":
    store.sendall(b"\x01" + text("/pid") + text(str(os.getpid())))
    store.sendall(b"\x0d" + bytes(4))
    receive(store, 4)
    sys.exit(0)
store.sendall(b"\x06" + struct.pack("<Q", 1) + text("/pid"))
receive(store, 1)
store.sendall(b"\x03" + text("/pid"))
pid = int(receive(store, struct.unpack("<Q", receive(store, 8))[0]))
while os.path.exists(f"/proc/{pid}"):
    time.sleep(0.01)
connect().close()
store.sendall(b"\x03" + text("/pid"))
assert int(receive(store, struct.unpack("<Q", receive(store, 8))[0])) == pid
print("still there")
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "still there\n");
}

// The launcher's memory stays bounded whatever a worker stores.
TEST(JobStore, AFullStoreIsSaidAndTheJobGoesOn) {
  const auto result = run_with_store({}, R"(
value = b"x" * (8 << 20)
store = connect()
try:
    for i in range(100):
        store.sendall(b"\x01" + text(f"/{i}") + text(value))
    print("all stored")
except ConnectionError:
    print("refused")
store = connect()
store.sendall(b"\x07")
assert struct.unpack("<q", receive(store, 8))[0] == 31
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "refused\n");
  EXPECT_TRUE(contains(result.err, "the store is full")) << result.err;
}

}  // namespace
}  // namespace lockstep::testing
