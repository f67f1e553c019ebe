#include "lockstep/board/board_site.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/board/assets.h"
#include "lockstep/board/curve_json.h"
#include "lockstep/board/run_details.h"
#include "lockstep/board/verdict_page.h"
#include "lockstep/net/address.h"
#include "lockstep/net/socket_owner.h"
#include "lockstep/runs/rank_table.h"
#include "lockstep/runs/run_json.h"

namespace lockstep::board {
namespace {

constexpr size_t kUsualPoints = 800;
constexpr int64_t kMostPoints = 2000;
constexpr const char* kJson = "application/json";

HttpResponse text_response(int status, std::string text) {
  return {.status = status, .body = std::move(text)};
}

HttpResponse json_response(std::string text) {
  return {.type = kJson, .body = std::move(text)};
}

std::string ranks_of(const runs::RunSummary& run) {
  if (run.state != runs::RunState::kRunning) return "[]";
  return runs::ranks_json(runs::read_ranks(run.info));
}

std::string changes_json(const RunChanges& changes) {
  std::vector<std::string> changed;
  changed.reserve(changes.changed.size());
  for (const auto& run : changes.changed) {
    changed.push_back(runs::summary_json(run));
  }
  std::vector<std::string> gone;
  gone.reserve(changes.gone.size());
  for (const auto& id : changes.gone) gone.push_back(runs::json_text(id));
  return fmt::format(R"({{"now":{},"complete":{},"runs":{},"gone":{}}})",
                     base::unix_seconds(), changes.is_complete,
                     runs::json_list(changed), runs::json_list(gone));
}

}  // namespace

struct BoardSite::Impl {
  BoardSiteConfig config;
  RunStore store{config.tree, config.store};
  net::SocketOwners owners = {};

  // No value when the request is granted.
  std::optional<HttpResponse> refuse(const HttpRequest& request, int socket);
  HttpResponse route(const HttpRequest& request,
                     const std::shared_ptr<Impl>& self);
  HttpResponse of_run(const HttpRequest& request);
  HttpResponse curves(const HttpRequest& request, const std::string& run);
  bool is_other_user(int socket) const;
};

namespace {

// The runs that changed, and the ranks of the one that is looked at.
template <typename Site>
class BoardEvents final : public EventStream {
 public:
  BoardEvents(std::shared_ptr<Site> site, std::string focus)
      : site_(std::move(site)), focus_(std::move(focus)) {}

  std::string next() override {
    const RunChanges changes = site_->store.changes_since(update_);
    std::string text;
    if (update_ == 0 || !changes.changed.empty() || !changes.gone.empty()) {
      text += fmt::format("event: runs\ndata: {}\n\n", changes_json(changes));
    }
    update_ = changes.update;
    const auto run = site_->store.find(focus_);
    if (run && run->state == runs::RunState::kRunning) {
      text += fmt::format("event: ranks\ndata: {{\"run\":{},\"ranks\":{}}}\n\n",
                          runs::json_text(focus_), ranks_of(*run));
    }
    return text;
  }

 private:
  std::shared_ptr<Site> site_;
  std::string focus_;
  uint64_t update_ = 0;
};

}  // namespace

// On a loopback address other users of the machine could look in, too.
bool BoardSite::Impl::is_other_user(int socket) const {
  if (config.access.token || !net::peer_address_of(socket).is_loopback()) {
    return false;
  }
  const auto owner = owners.owner_of_peer(socket);
  return owner && *owner != geteuid() && *owner != 0;
}

std::optional<HttpResponse> BoardSite::Impl::refuse(const HttpRequest& request,
                                                    int socket) {
  if (is_other_user(socket)) {
    return text_response(403,
                         "this board belongs to another user of the machine; "
                         "lockstep board --token lets others in\n");
  }
  switch (check_access(request, config.access)) {
    case Access::kGranted: return std::nullopt;
    case Access::kGrantedByLink:
      return HttpResponse{
          .status = 303,
          .headers = {{"Location", "/"},
                      {"Set-Cookie", token_cookie(*config.access.token)}}};
    case Access::kNoToken:
      return text_response(
          401, "open the address with the token that lockstep board printed\n");
    case Access::kForeignHost: break;
  }
  return text_response(403,
                       "open the board as http://localhost:PORT; other names "
                       "need lockstep board --token\n");
}

HttpResponse BoardSite::Impl::route(const HttpRequest& request,
                                    const std::shared_ptr<Impl>& self) {
  if (request.path == "/verdicts.html") {
    return {.type = "text/html; charset=utf-8",
            .body = verdict_page(find_asset("/verdicts.md")->bytes),
            .headers = {{"Cache-Control", "no-cache"}}};
  }
  if (const auto asset = find_asset(request.path)) {
    return {.type = std::string(asset->type),
            .body = std::string(asset->bytes),
            .headers = {{"Cache-Control", "no-cache"}}};
  }
  if (request.path == "/api/runs") {
    return json_response(fmt::format(R"({{"title":{},"list":{}}})",
                                     runs::json_text(config.title),
                                     changes_json(store.changes_since(0))));
  }
  if (request.path == "/api/events") {
    return {.type = "text/event-stream",
            .stream = std::make_shared<BoardEvents<Impl>>(
                self, request.value("focus").value_or(""))};
  }
  if (request.path.starts_with("/api/")) return of_run(request);
  return text_response(404, "no such page\n");
}

HttpResponse BoardSite::Impl::of_run(const HttpRequest& request) {
  const auto run = store.find(request.value("run").value_or(""));
  if (!run) return text_response(404, "no such run\n");
  if (request.path == "/api/curves") return curves(request, run->id);
  if (request.path == "/api/run") {
    return json_response(fmt::format(R"({{"run":{},"ranks":{},"details":{}}})",
                                     runs::summary_json(*run), ranks_of(*run),
                                     details_json(*config.tree, *run)));
  }
  if (request.path == "/api/log") {
    return text_response(200, log_end(*config.tree, *run));
  }
  if (request.path == "/api/trace") {
    auto trace = open_trace(*config.tree, *run);
    if (!trace) return text_response(404, "no such trace\n");
    const int64_t size = trace->facts.size;
    return {.type = kJson,
            .file = std::make_shared<const HttpFile>(
                HttpFile{.file = std::move(trace->file), .size = size}),
            .headers = {{"Content-Disposition",
                         "attachment; filename=\"trace.json\""}}};
  }
  if (request.path == "/api/sample") {
    auto sample =
        read_sample(*config.tree, *run, request.value("path").value_or(""));
    if (!sample) return text_response(404, "no such sample\n");
    return {.type = std::move(sample->type),
            .body = std::move(sample->bytes),
            .headers = {{"Cache-Control", "private, max-age=3600"}}};
  }
  return text_response(404, "no such page\n");
}

HttpResponse BoardSite::Impl::curves(const HttpRequest& request,
                                     const std::string& run) {
  const int64_t points = std::clamp<int64_t>(
      base::parse_integer(request.value("points").value_or(""))
          .value_or(kUsualPoints),
      2, kMostPoints);
  std::vector<std::string> wanted;
  if (const auto names = request.value("metrics")) {
    wanted = base::split(*names, ',');
  }
  std::string metrics;
  const bool is_read = store.with_curves(run, [&](const runs::RunCurves& all) {
    metrics = curves_json(all.metrics(), wanted, static_cast<size_t>(points));
  });
  return json_response(is_read ? fmt::format(R"({{"run":{},"metrics":{}}})",
                                             runs::json_text(run), metrics)
                               : fmt::format(R"({{"run":{},"reading":true}})",
                                             runs::json_text(run)));
}

BoardSite::BoardSite(BoardSiteConfig config)
    : impl_(new Impl{.config = std::move(config)}) {}

BoardSite::~BoardSite() = default;

HttpResponse BoardSite::answer(const HttpRequest& request, int socket) {
  try {
    if (auto refusal = impl_->refuse(request, socket)) {
      return *std::move(refusal);
    }
    return impl_->route(request, impl_);
  } catch (const std::exception& error) {
    return text_response(500, std::string(error.what()) + "\n");
  }
}

}  // namespace lockstep::board
