#include "lockstep/board/http_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using base::FileDescriptor;

constexpr int kLimitMs = 120'000;
constexpr int64_t kFileBytes = int64_t{12} << 20;

class Ticks final : public board::EventStream {
 public:
  std::string next() override {
    return "data: " + std::to_string(++count_) + "\n\n";
  }

 private:
  int count_ = 0;
};

board::HttpResponse answer(const board::HttpRequest& request, int /*socket*/) {
  if (request.path == "/events") {
    return {.type = "text/event-stream", .stream = std::make_shared<Ticks>()};
  }
  if (request.path == "/large") {
    return {.body = std::string(size_t{8} << 20, 'x')};
  }
  if (request.path.ends_with("/file")) {
    return {.file = std::make_shared<const board::HttpFile>(board::HttpFile{
                .file = FileDescriptor(
                    open(request.path.c_str(), O_RDONLY | O_CLOEXEC)),
                .size = kFileBytes})};
  }
  return {.body = "you asked for " + request.path};
}

// A server at a socket of the file system: no port is needed.
class HttpServerTest : public ::testing::Test {
 protected:
  void start(board::HttpServerConfig config = {}) {
    const std::string path = (folder_.path() / "socket").string();
    address_.sun_family = AF_UNIX;
    path.copy(address_.sun_path, sizeof(address_.sun_path) - 1);
    FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener.get(), address(), sizeof(address_)), 0);
    ASSERT_EQ(listen(listener.get(), 4096), 0);
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    stop_reader_ = FileDescriptor(ends[0]);
    stop_writer_ = FileDescriptor(ends[1]);
    config.tick = std::chrono::milliseconds(10);
    server_ = std::make_unique<board::HttpServer>(std::move(listener), config,
                                                  answer);
    thread_ = std::thread([this] { server_->run(stop_reader_.get()); });
  }

  ~HttpServerTest() override {
    stop_writer_.reset();
    if (thread_.joinable()) thread_.join();
  }

  const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&address_);
  }

  FileDescriptor connected() const {
    FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), address(), sizeof(address_)), 0);
    return client;
  }

  // Reads until the text is there or the server closed the connection.
  static std::string read_until(int client, const std::string& text) {
    std::string got;
    std::array<char, 65536> buffer{};
    while (text.empty() || got.find(text) == std::string::npos) {
      pollfd ready{.fd = client, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, kLimitMs) <= 0) {
        ADD_FAILURE() << "no answer; got " << got.size() << " bytes";
        break;
      }
      const ssize_t size = read(client, buffer.data(), buffer.size());
      if (size <= 0) break;
      got.append(buffer.data(), static_cast<size_t>(size));
    }
    return got;
  }

  static void send_text(int client, const std::string& text) {
    ASSERT_EQ(send(client, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  static std::string request(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }

  std::string file_path() const { return (folder_.path() / "file").string(); }

  bool is_served() const {
    const FileDescriptor client = connected();
    send_text(client.get(), request("/x"));
    return read_until(client.get(), "asked for /x").find("200 OK") !=
           std::string::npos;
  }

  const testing::TempDir folder_;
  sockaddr_un address_{};
  FileDescriptor stop_reader_;
  FileDescriptor stop_writer_;
  std::unique_ptr<board::HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersSeveralRequestsOfOneConnection) {
  start();
  const FileDescriptor client = connected();
  send_text(client.get(), request("/a") + request("/b"));
  const std::string both = read_until(client.get(), "asked for /b");
  EXPECT_NE(both.find("asked for /a"), std::string::npos);
  EXPECT_NE(both.find("Content-Security-Policy: default-src 'none'"),
            std::string::npos);
  EXPECT_NE(both.find("X-Content-Type-Options: nosniff"), std::string::npos);
  // In pieces, one byte each.
  for (const char byte : request("/c")) {
    send_text(client.get(), std::string(1, byte));
  }
  EXPECT_NE(read_until(client.get(), "asked for /c").find("200 OK"),
            std::string::npos);
}

TEST_F(HttpServerTest, HeadHasNoBodyAndCloseIsHonoured) {
  start();
  const FileDescriptor client = connected();
  send_text(client.get(),
            "HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = read_until(client.get(), "");
  EXPECT_NE(all.find("Content-Length: 16\r\n"), std::string::npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, SendsLargeAnswersToSlowReaders) {
  start();
  const FileDescriptor client = connected();
  send_text(client.get(), request("/large") + request("/after"));
  const std::string all = read_until(client.get(), "asked for /after");
  EXPECT_GT(all.size(), size_t{8} << 20);
}

TEST_F(HttpServerTest, FilesAreSentPieceByPieceWhileOthersAreServed) {
  start();
  std::string bytes(kFileBytes, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((i * 2654435761U) >> 24);
  }
  folder_.write("file", bytes);
  const FileDescriptor client = connected();
  send_text(client.get(), request(file_path()) + request("/after"));
  std::string got = read_until(client.get(), "\r\n\r\n");
  EXPECT_NE(got.find("Content-Length: " + std::to_string(kFileBytes) + "\r\n"),
            std::string::npos);
  EXPECT_TRUE(is_served());
  got += read_until(client.get(), "asked for /after");
  const size_t begin = got.find("\r\n\r\n") + 4;
  EXPECT_TRUE(got.compare(begin, bytes.size(), bytes) == 0);
  EXPECT_EQ(got.compare(begin + bytes.size(), 8, "HTTP/1.1"), 0);
}

TEST_F(HttpServerTest, AFileThatBecameShorterEndsTheConnection) {
  start();
  folder_.write("file", "short");
  const FileDescriptor client = connected();
  send_text(client.get(), request(file_path()));
  EXPECT_TRUE(read_until(client.get(), "").ends_with("\r\n\r\nshort"));
  EXPECT_TRUE(is_served());
}

TEST_F(HttpServerTest, WhoSendsAndNeverReceivesIsNotReadFromAndIsDropped) {
  start({.write_timeout = std::chrono::milliseconds(300),
         .most_waiting_bytes = size_t{1} << 20});
  const FileDescriptor client = connected();
  const std::string text = request("/large");
  size_t sent = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const ssize_t count = send(client.get(), text.data(), text.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) break;  // Dropped.
    if (count > 0) sent += static_cast<size_t>(count);
    if (count < 0) std::this_thread::yield();
    ASSERT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::milliseconds(kLimitMs));
  }
  // What the socket itself holds.
  EXPECT_LT(sent, size_t{4} << 20);
  EXPECT_TRUE(is_served());
}

TEST_F(HttpServerTest, EventsKeepComing) {
  start();
  const FileDescriptor client = connected();
  send_text(client.get(), request("/events"));
  const std::string events = read_until(client.get(), "data: 4\n\n");
  EXPECT_NE(events.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_NE(events.find("data: 1\n\n"), std::string::npos);
}

TEST_F(HttpServerTest, AThousandIdleConnectionsHinderNobody) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_GE(limit.rlim_cur, 2200U) << "ulimit -n is too small for this test";
  start();
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(connected());
    if (i % 2 == 0) send_text(idle.back().get(), "GET /half HTTP/1.1\r\n");
  }
  EXPECT_TRUE(is_served());
  // The oldest is still there.
  send_text(idle[0].get(), "Host: localhost\r\n\r\n");
  EXPECT_NE(read_until(idle[0].get(), "asked for /half").find("200 OK"),
            std::string::npos);
}

TEST_F(HttpServerTest, WhereTheyAreTooManyTheOneIdleLongestGoes) {
  start({.most_connections = 3});
  const FileDescriptor first = connected();
  send_text(first.get(), request("/a"));
  read_until(first.get(), "asked for /a");
  std::vector<FileDescriptor> more;
  for (int i = 0; i < 3; ++i) {
    more.push_back(connected());
    send_text(more.back().get(), request("/b"));
    read_until(more.back().get(), "asked for /b");
  }
  EXPECT_EQ(read_until(first.get(), ""), "");
}

TEST_F(HttpServerTest, UnfinishedRequestsEndInTime) {
  start({.request_timeout = std::chrono::milliseconds(20)});
  const FileDescriptor client = connected();
  send_text(client.get(), "GET / HT");
  EXPECT_EQ(read_until(client.get(), ""), "");
  EXPECT_TRUE(is_served());
}

TEST_F(HttpServerTest, BytesThatAreNotHttpAreRefused) {
  start();
  std::string noise;
  for (int i = 0; i < 5000; ++i) {
    noise += static_cast<char>((i * 2654435761U) >> 13);
  }
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x00\xa5\x01", 6), noise,
        std::string("\0\0\0\0", 4), std::string("SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        std::string(16'384, 'A')}) {
    const FileDescriptor client = connected();
    send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const std::string got = read_until(client.get(), "");
    EXPECT_TRUE(got.empty() || got.starts_with("HTTP/1.1 4")) << got;
  }
  EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace lockstep
