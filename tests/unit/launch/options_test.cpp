#include "lockstep/launch/options.h"

#include <gtest/gtest.h>

#include <csignal>

#include "lockstep/error.h"
#include "lockstep/launch/option_table.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;
using testing::contains;

launch::RunOptions parse(const Arguments& arguments,
                         const base::Environment& environment = {}) {
  return launch::parse_run_options(arguments, environment);
}

std::string parse_refusal(const Arguments& arguments,
                          const base::Environment& environment = {}) {
  return testing::refusal<ConfigError>([&] { parse(arguments, environment); });
}

TEST(RunOptions, AllSpellingsOfAnOptionAreEqual) {
  for (const Arguments& arguments :
       std::vector<Arguments>{{"--nproc-per-node", "4", "p"},
                              {"--nproc_per_node", "4", "p"},
                              {"--nproc-per-node=4", "p"},
                              {"--nproc_per_node=4", "p"},
                              {"--nproc", "4", "p"},
                              {"--nproc=4", "p"}}) {
    EXPECT_EQ(parse(arguments).nproc, "4") << arguments[0];
  }
  for (const Arguments& arguments :
       std::vector<Arguments>{{"-r", "3", "p"},
                              {"-r3", "p"},
                              {"-r=3", "p"},
                              {"--redirects", "3", "p"}}) {
    EXPECT_TRUE(parse(arguments).redirects.has(5, launch::Stream::kErr));
  }
}

TEST(RunOptions, EverythingAfterTheProgramIsUntouched) {
  const launch::RunOptions options =
      parse({"--nproc", "2", "./train", "--nproc", "9", "--", "-r", "x"});
  EXPECT_EQ(options.nproc, "2");
  EXPECT_EQ(options.program, "./train");
  EXPECT_EQ(options.arguments, (Arguments{"--nproc", "9", "--", "-r", "x"}));
}

TEST(RunOptions, TwoDashesEndTheOptions) {
  EXPECT_EQ(parse({"--", "--odd-name"}).program, "--odd-name");
}

TEST(RunOptions, DefaultsAreThoseOfTorchrun) {
  const launch::RunOptions options = parse({"p"});
  EXPECT_EQ(options.nproc, "1");
  EXPECT_EQ(options.run_id, "none");
  EXPECT_EQ(options.role, "default");
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_FALSE(options.master_port);
  EXPECT_EQ(options.shutdown_timeout, 30);
  EXPECT_EQ(options.stop_signals,
            (std::vector<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT}));
}

TEST(RunOptions, EveryOptionOfTorchrunForOneNodeIsAccepted) {
  const launch::RunOptions options =
      parse({"--nnodes=1:1",
             "--rdzv-backend=c10d",
             "--rdzv-endpoint=localhost:0",
             "--rdzv-id=job",
             "--rdzv-conf=timeout=5",
             "--standalone",
             "--max-restarts=2",
             "--monitor-interval=0.5",
             "--start-method=fork",
             "--event-log-handler=null",
             "--role=trainer",
             "--log-dir=logs",
             "--tee=0:3,12:1",
             "--local-ranks-filter=0,3",
             "--node-rank=0",
             "--duplicate-stdout-filters=apple,o,,range",
             "--master-addr=localhost",
             "--duplicate-stderr-filters=bad",
             "--master-port=1234",
             "--local-addr=127.0.0.1",
             "--signals-to-handle=SIGTERM,SIGUSR1",
             "--virtual-local-rank",
             "--use_env",
             "--no-python",
             "p"});
  EXPECT_EQ(options.max_restarts, 2);
  EXPECT_EQ(options.run_id, "job");
  EXPECT_EQ(options.shown_ranks, (std::set<int>{0, 3}));
  EXPECT_EQ(options.stdout_filters, (Arguments{"apple", "o,range"}));
  EXPECT_EQ(options.stop_signals, (std::vector<int>{SIGTERM, SIGUSR1}));
  EXPECT_TRUE(options.tee.has(12, launch::Stream::kOut));
  EXPECT_TRUE(options.standalone && options.virtual_local_rank);
  EXPECT_TRUE(parse({"-m", "package.train"}).module);
}

TEST(RunOptions, OwnOptions) {
  const launch::RunOptions options =
      parse({"--share-gpus", "--timeout=2.5", "--shutdown-timeout", "1", "p"});
  EXPECT_TRUE(options.share_gpus);
  EXPECT_EQ(options.timeout, 2.5);
  EXPECT_EQ(options.shutdown_timeout, 1);
}

TEST(RunOptions, VariablesStandForMissingOptions) {
  const base::Environment environment = {{"PET_NPROC_PER_NODE", "4"},
                                         {"PET_STANDALONE", "1"},
                                         {"PET_NO_PYTHON", "0"},
                                         {"PET_MASTER_PORT", "1234"}};
  const launch::RunOptions from_variables = parse({"p"}, environment);
  EXPECT_EQ(from_variables.nproc, "4");
  EXPECT_TRUE(from_variables.standalone);
  EXPECT_FALSE(from_variables.no_python);
  EXPECT_EQ(from_variables.master_port, 1234);
  EXPECT_EQ(parse({"--nproc=2", "p"}, environment).nproc, "2");
}

TEST(RunOptions, ABadVariableIsNamed) {
  EXPECT_TRUE(
      contains(parse_refusal({"p"}, {{"PET_NNODES", "x"}}), "PET_NNODES=x"));
}

TEST(RunOptions, ABeginningThatFitsOneOptionIsThatOption) {
  EXPECT_EQ(parse({"--max-r", "2", "p"}).max_restarts, 2);
  EXPECT_EQ(parse({"--max_r=2", "p"}).max_restarts, 2);
  EXPECT_EQ(parse({"--nproc_per", "3", "p"}).nproc, "3");
  EXPECT_EQ(parse({"--np=3", "p"}).nproc, "3");
  EXPECT_TRUE(parse({"--standa", "p"}).standalone);
  EXPECT_EQ(parse({"--rdzv_e=h:1", "p"}).endpoint, "h:1");
  EXPECT_EQ(
      parse_refusal({"--rdzv=x", "p"}),
      "'--rdzv=x' is ambiguous: it may mean --rdzv-endpoint, --rdzv-id, "
      "--rdzv-conf, --rdzv-secret-file, --rdzv-no-secret, --rdzv-backend");
}

TEST(RunOptions, TheNumberOfNodesMayHaveBounds) {
  EXPECT_EQ(parse({"--nnodes=1:4", "p"}).max_nodes, 4);
  EXPECT_EQ(parse({"--nnodes=1:4", "p"}).num_nodes, 1);
  EXPECT_EQ(parse({"--nnodes=1", "p"}).max_nodes, 1);
  EXPECT_EQ(parse({"--nnodes=3", "p"}).num_nodes, 3);
  EXPECT_EQ(parse({"--nnodes=3:3", "p"}).num_nodes, 3);
  EXPECT_TRUE(
      contains(parse_refusal({"--nnodes=2:1", "p"}), "must be a number"));
  EXPECT_EQ(parse({"--nnodes=2:4", "p"}).num_nodes, 2);
  EXPECT_EQ(parse({"--nnodes=2:4", "p"}).max_nodes, 4);
  for (const char* bad : {"2:", ":2", "1:2:3", "0:2", "1:9000"}) {
    EXPECT_TRUE(contains(parse_refusal({std::string("--nnodes=") + bad, "p"}),
                         "--nnodes '"))
        << bad;
  }
}

TEST(RunOptions, RendezvousSettingsHaveTheNamesOfTorchrun) {
  const launch::RendezvousSettings settings =
      parse({"--rdzv-conf",
             "join_timeout=7, keep_alive_interval=0.5,"
             "keep_alive_max_attempt=4,last_call_timeout=3,is_host=1",
             "p"})
          .rendezvous;
  EXPECT_EQ(settings.join_timeout, 7);
  EXPECT_EQ(settings.last_call_timeout, 3);
  EXPECT_EQ(settings.keep_alive_interval, 0.5);
  EXPECT_EQ(settings.keep_alive_max_attempt, 4);
  EXPECT_EQ(parse({"--rdzv-conf=timeout=9", "p"}).rendezvous.join_timeout, 9);
  EXPECT_TRUE(contains(parse_refusal({"--rdzv-conf=join_timeuot=7", "p"}),
                       "did you mean join_timeout?"));
  EXPECT_TRUE(
      contains(parse_refusal({"--rdzv-conf=join_timeout", "p"}), "NAME=VALUE"));
  for (const char* value :
       {"join_timeout=x", "join_timeout=-1", "keep_alive_interval=nan",
        "join_timeout=1e99", "keep_alive_max_attempt=0"}) {
    EXPECT_TRUE(contains(
        parse_refusal({std::string("--rdzv-conf=") + value, "p"}), "must be"))
        << value;
  }
}

TEST(RunOptions, TheEventHandlerIsNullOrConsole) {
  EXPECT_FALSE(parse({"p"}).prints_events);
  EXPECT_FALSE(parse({"--event-log-handler=null", "p"}).prints_events);
  EXPECT_TRUE(parse({"--event_log_handler", "console", "p"}).prints_events);
}

TEST(RunOptions, RunPathBeatsNoPython) {
  const launch::RunOptions options =
      parse({"--run-path", "--no-python", "-m", "p"});
  EXPECT_TRUE(options.run_path);
  EXPECT_FALSE(options.no_python || options.module);
}

TEST(RunOptions, UnknownOptionSuggestsTheNearest) {
  EXPECT_TRUE(contains(parse_refusal({"--nprc-per-node=2", "p"}),
                       "did you mean --nproc-per-node"));
  EXPECT_TRUE(contains(parse_refusal({"--log_dri", "x", "p"}), "--log-dir"));
  EXPECT_TRUE(
      contains(parse_refusal({"--batch-size=3", "p"}), "after PROGRAM"));
  EXPECT_NE(parse_refusal({"-x", "p"}), "accepted");
}

TEST(RunOptions, WhatHasNoMeaningHereIsRefusedInOneSentence) {
  for (const Arguments& arguments :
       std::vector<Arguments>{{"--rdzv-backend=etcd", "p"},
                              {"--event-log-handler=x", "p"},
                              {"--logs-specs=x", "p"},
                              {"--nproc-per-node=xpu", "p"}}) {
    const std::string text = parse_refusal(arguments);
    EXPECT_TRUE(contains(text, "not supported")) << arguments[0] << text;
    EXPECT_FALSE(contains(text, ". ")) << text;
  }
}

TEST(RunOptions, NumaBindingIsOneOfFourModes) {
  EXPECT_FALSE(parse({"p"}).numa_binding);
  EXPECT_EQ(parse({"--numa-binding=node", "p"}).numa_binding,
            launch::NumaMode::kNode);
  EXPECT_EQ(parse({"--numa_binding", "socket", "p"}).numa_binding,
            launch::NumaMode::kSocket);
  EXPECT_EQ(parse({"--numa-binding=exclusive", "p"}).numa_binding,
            launch::NumaMode::kExclusive);
  EXPECT_EQ(parse({"p"}, {{"PET_NUMA_BINDING", "core-complex"}}).numa_binding,
            launch::NumaMode::kCoreComplex);
  EXPECT_EQ(parse_refusal({"--numa-binding=all", "p"}),
            "--numa-binding 'all' must be node, socket, exclusive or "
            "core-complex");
}

TEST(RunOptions, BadValuesNameTheOption) {
  EXPECT_TRUE(contains(parse_refusal({"--nproc=0", "p"}), "--nproc-per-node"));
  EXPECT_TRUE(contains(parse_refusal({"--nproc=many", "p"}), "many"));
  EXPECT_TRUE(
      contains(parse_refusal({"--max-restarts=-1", "p"}), "max-restarts"));
  EXPECT_TRUE(contains(parse_refusal({"--master-port=70000", "p"}), "65535"));
  EXPECT_TRUE(contains(parse_refusal({"--timeout=0", "p"}), "--timeout"));
  EXPECT_TRUE(contains(parse_refusal({"--tee=0:4", "p"}), "--tee"));
  EXPECT_TRUE(contains(parse_refusal({"--signals-to-handle=X", "p"}), "'X'"));
  EXPECT_TRUE(contains(parse_refusal({"--log-dir"}), "needs a value"));
  EXPECT_TRUE(
      contains(parse_refusal({"--standalone=1", "p"}), "takes no value"));
  EXPECT_TRUE(contains(parse_refusal({"-m", "--no-python", "p"}), "exclude"));
  EXPECT_TRUE(contains(parse_refusal({"--nproc=2"}), "PROGRAM is missing"));
}

TEST(RunOptions, HelpShowsEveryOptionWithinTheScreen) {
  const std::string text = launch::run_help();
  for (const launch::RunOption& option : launch::run_option_table()) {
    if (option.help == nullptr) continue;
    EXPECT_TRUE(contains(text, std::string("--") + option.name));
  }
  size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos;
       end = text.find('\n', begin)) {
    EXPECT_LE(end - begin, 80u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
  EXPECT_TRUE(parse({"--help"}).help);
}

}  // namespace
}  // namespace lockstep
