// The addresses of the board: its page, the data behind it, and its events.
//
//   /                             the page and its files
//   /api/runs                     all runs, one line each
//   /api/events?focus=RUN         changes of runs, and the ranks of one
//   /api/curves?run=RUN           its curves; points=N, metrics=A,B
//   /api/run?run=RUN              samples, checkpoints, settings, ranks
//   /api/log?run=RUN              the end of its log
//   /api/sample?run=RUN&path=P    a sampled image or text
//   /api/trace?run=RUN            the trace of --profile
//   /verdicts.html#CAUSE          what causes of failures mean
#pragma once

#include <memory>
#include <string>

#include "lockstep/board/access.h"
#include "lockstep/board/http_server.h"
#include "lockstep/board/run_store.h"
#include "lockstep/runs/folder_tree.h"

namespace lockstep::board {

struct BoardSiteConfig {
  std::shared_ptr<const runs::FolderTree> tree = {};
  std::string title = {};  // What the page calls the folder.
  AccessRules access = {};
  RunStoreConfig store = {};
};

// Only reads.
class BoardSite {
 public:
  explicit BoardSite(BoardSiteConfig config);
  ~BoardSite();

  // Does not throw.
  HttpResponse answer(const HttpRequest& request, int socket);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // Shared with event streams.
};

}  // namespace lockstep::board
