#include "lockstep/board/board_site.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/environment.h"
#include "lockstep/track/run_file.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Query = std::vector<std::pair<std::string, std::string>>;

constexpr int kNoSocket = -1;
constexpr double kLimit = 120;

class BoardSiteTest : public ::testing::Test {
 protected:
  BoardSiteTest() {
    fs::create_directories(folder_.path() / "runs/a/samples");
    folder_.write("secret.png", "secret");
    folder_.write("runs/a/config.yaml", "# recipe: tiny\nlr: 0.5\n");
    folder_.write("runs/a/metrics.jsonl",
                  "{\"step\":1,\"train/loss\":0.5}\nbroken\n");
    folder_.write("runs/a/train.log", "one\n\x1b[2Jtwo\n");
    folder_.write("runs/a/checkpoint_step_7.pt", "12345");
    folder_.write("runs/a/samples/step_3.png", "PNG bytes");
    folder_.write("runs/a/samples/page.html", "<script>");
    fs::create_symlink("../../../secret.png",
                       folder_.path() / "runs/a/samples/link.png");
    fs::create_directory_symlink("..", folder_.path() / "runs/a/samples/up");
  }

  board::BoardSite& site() {
    if (!site_) {
      site_ = std::make_unique<board::BoardSite>(board::BoardSiteConfig{
          .tree =
              std::make_shared<const runs::FolderTree>(folder_.path() / "runs"),
          .title = "title",
          .access = {.token = token_},
          .store = {.interval = std::chrono::milliseconds(5)}});
    }
    return *site_;
  }

  board::HttpResponse get(const std::string& path, Query query = {}) {
    return site().answer(
        {.path = path, .query = std::move(query), .host = "localhost"},
        kNoSocket);
  }

  void wait_for_runs() {
    ASSERT_TRUE(testing::wait_for(
        [&] { return get("/api/run", {{"run", "a"}}).status == 200; }, kLimit));
  }

  const testing::TempDir folder_;
  std::optional<std::string> token_ = {};
  std::unique_ptr<board::BoardSite> site_;
};

TEST_F(BoardSiteTest, ServesThePageWithAllItsFiles) {
  const board::HttpResponse page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("Lockstep board"), std::string::npos);
  for (const char* path :
       {"/board.css", "/board.js", "/charts.js", "/details.js", "/format.js",
        "/icon.svg", "/dygraph.js", "/dygraph.css"}) {
    EXPECT_EQ(get(path).status, 200) << path;
    EXPECT_GT(get(path).body.size(), 100U) << path;
  }
  EXPECT_NE(get("/dygraph-license.txt").body.find("MIT"), std::string::npos);
  EXPECT_EQ(get("/other").status, 404);
  EXPECT_EQ(get("/api/other").status, 404);
}

TEST_F(BoardSiteTest, ListsRunsAndTheirDetails) {
  wait_for_runs();
  const auto list = nlohmann::json::parse(get("/api/runs").body);
  EXPECT_EQ(list["title"], "title");
  ASSERT_EQ(list["list"]["runs"].size(), 1U);
  EXPECT_EQ(list["list"]["runs"][0]["id"], "a");
  EXPECT_EQ(list["list"]["runs"][0]["loss"], 0.5);
  const auto run = nlohmann::json::parse(get("/api/run", {{"run", "a"}}).body);
  const auto& details = run["details"];
  ASSERT_EQ(details["samples"].size(), 1U);
  EXPECT_EQ(details["samples"][0]["path"], "samples/step_3.png");
  EXPECT_EQ(details["samples"][0]["step"], 3);
  EXPECT_EQ(details["checkpoints"][0]["step"], 7);
  EXPECT_EQ(details["checkpoints"][0]["bytes"], 5);
  EXPECT_EQ(details["settings"][0][0], "lr");
  EXPECT_EQ(get("/api/log", {{"run", "a"}}).body, "one\n\\x1b[2Jtwo\n");
}

TEST_F(BoardSiteTest, GivesCurvesOnceTheyAreRead) {
  wait_for_runs();
  ASSERT_TRUE(testing::wait_for(
      [&] {
        return get("/api/curves", {{"run", "a"}, {"points", "x"}})
                   .body.find("reading") == std::string::npos;
      },
      kLimit));
  const auto curves =
      nlohmann::json::parse(get("/api/curves", {{"run", "a"}}).body);
  EXPECT_EQ(curves["metrics"]["train/loss"]["y"][0], 0.5);
  EXPECT_EQ(get("/api/curves", {{"run", "a"}, {"metrics", "none"}}).body,
            R"({"run":"a","metrics":{}})");
}

TEST_F(BoardSiteTest, SamplesComeFromTheFoldersOfSamplesAlone) {
  wait_for_runs();
  const auto sample = [&](const std::string& path) {
    return get("/api/sample", {{"run", "a"}, {"path", path}});
  };
  EXPECT_EQ(sample("samples/step_3.png").body, "PNG bytes");
  EXPECT_EQ(sample("samples/step_3.png").type, "image/png");
  for (const char* path :
       {"samples/../config.yaml", "samples/../../../secret.png",
        "samples/link.png", "samples/up/samples/step_3.png", "config.yaml",
        "train.log", "checkpoint_step_7.pt", "samples/page.html", "samples",
        "samples/", "", "/etc/passwd", "../secret.png", "samples/none.png",
        "samples//step_3.png"}) {
    EXPECT_EQ(sample(path).status, 404) << path;
  }
}

TEST_F(BoardSiteTest, OnlyRunsThatWereFoundHaveAnAddress) {
  wait_for_runs();
  for (const char* run : {"..", "../runs/a", "a/", "./a", "a/samples", "",
                          "/etc", "a/../a", "b"}) {
    for (const char* path :
         {"/api/run", "/api/log", "/api/curves", "/api/sample"}) {
      EXPECT_EQ(
          get(path, {{"run", run}, {"path", "samples/step_3.png"}}).status, 404)
          << run << path;
    }
  }
}

TEST_F(BoardSiteTest, EventsTellOfNewAndChangedRuns) {
  wait_for_runs();
  const board::HttpResponse response = get("/api/events", {{"focus", "a"}});
  ASSERT_NE(response.stream, nullptr);
  EXPECT_EQ(response.type, "text/event-stream");
  EXPECT_NE(response.stream->next().find(R"("id":"a")"), std::string::npos);
  fs::create_directory(folder_.path() / "runs/b");
  folder_.write("runs/b/metrics.jsonl", "{\"step\":9,\"train/loss\":1}\n");
  std::string events;
  EXPECT_TRUE(testing::wait_for(
      [&] {
        events += response.stream->next();
        return events.find(R"("id":"b")") != std::string::npos;
      },
      kLimit));
  fs::remove_all(folder_.path() / "runs/b");
  EXPECT_TRUE(testing::wait_for(
      [&] {
        events += response.stream->next();
        return events.find(R"("gone":["b"])") != std::string::npos;
      },
      kLimit));
}

TEST_F(BoardSiteTest, RefusesForeignNamesAndMissingTokens) {
  EXPECT_EQ(
      site().answer({.path = "/", .host = "evil.example"}, kNoSocket).status,
      403);
  site_.reset();
  token_ = "0123456789abcdef";
  EXPECT_EQ(get("/").status, 401);
  EXPECT_EQ(get("/api/runs").status, 401);
  const board::HttpResponse entry = get("/", {{"token", *token_}});
  EXPECT_EQ(entry.status, 303);
  EXPECT_EQ(entry.headers.at(0).second, "/");
  EXPECT_EQ(entry.body, "");
}

TEST_F(BoardSiteTest, DamagedRunsAreShownAsFarAsTheyCanBeRead) {
  for (const char* name : {"config.yaml", "metrics.jsonl", "run.json"}) {
    fs::remove(folder_.path() / "runs/a" / name);
    folder_.write(std::string("runs/a/") + name,
                  "\xff\xfe{\"end\": [\n# recipe: \x01\n");
  }
  fs::remove_all(folder_.path() / "runs/a/samples");
  folder_.write("runs/a/samples", "a file");
  wait_for_runs();
  const auto run = nlohmann::json::parse(get("/api/run", {{"run", "a"}}).body);
  EXPECT_NE(run["details"]["settings_problem"], "");
  EXPECT_EQ(run["run"]["state"], "unknown");
}

TEST_F(BoardSiteTest, ProfilesAreShownByTheirNumbersAlone) {
  const auto profile = [this] {
    const auto answer = get("/api/run", {{"run", "a"}});
    return nlohmann::json::parse(answer.body).at("details").at("profile");
  };
  wait_for_runs();
  EXPECT_TRUE(profile().is_null());
  EXPECT_EQ(get("/api/trace", {{"run", "a"}}).status, 404);
  fs::create_directories(folder_.path() / "runs/a/profile");
  folder_.write("runs/a/profile/trace.json", "{}");
  const auto trace = get("/api/trace", {{"run", "a"}});
  ASSERT_TRUE(trace.file) << "it is not read at once: it may be large";
  EXPECT_EQ(trace.file->size, 2);
  folder_.write(
      "runs/a/profile/summary.json",
      R"({"device":"CPU","secret":[[1]],"ranks":[{"rank":1,"steps":2,)"
      R"("step_ms":"x","ns":{"products":5,"host":[7]}},8]})");
  const auto shown = profile();
  EXPECT_EQ(shown.at("ranks").size(), 1U);
  EXPECT_EQ(shown["ranks"][0]["ns"].dump(), "{\"products\":5}");
  EXPECT_FALSE(shown.contains("secret"));
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string(200'000, '['),
        std::string("{\"ranks\":7}")}) {
    folder_.write("runs/a/profile/summary.json", text);
    EXPECT_TRUE(profile().is_null()) << text.substr(0, 20);
  }
}

TEST_F(BoardSiteTest, TheVerdictOfAFailedRunIsShown) {
  // Without an end, and no process holds its folder.
  folder_.write("runs/a/run.json",
                track::run_info_text({.recipe = "tiny",
                                      .host = base::host_name(),
                                      .pid = 1,
                                      .started = 5}));
  folder_.write(
      "runs/a/verdict.json",
      R"({"cause":"stall","evidence":"rank 1","next":"lockstep board"})");
  wait_for_runs();
  const auto run =
      nlohmann::json::parse(get("/api/run", {{"run", "a"}}).body).at("run");
  EXPECT_EQ(run.at("state"), "failed");
  EXPECT_EQ(run.at("verdict").at("cause"), "stall");
  EXPECT_EQ(run.at("verdict").at("next"), "lockstep board");
  EXPECT_NE(get("/verdicts.md").body.find("## stall"), std::string::npos);
  const std::string page = get("/verdicts.html").body;
  for (const char* part : {"<h2 id=\"stall\">stall</h2>",
                           "id=\"out-of-host-memory-oom-killer\""}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace lockstep
