#include "lockstep/launch/nodes_plan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/error.h"
#include "support/messages.h"
#include "support/temp_dir.h"
#include "unit/launch/plan_for.h"

namespace lockstep {
namespace {

using launch::NodesPlan;
using testing::expect_in;
using Arguments = std::vector<std::string>;

NodesPlan nodes_of(const Arguments& arguments,
                   const base::Environment& environment = {}) {
  return launch::plan_nodes(launch::parse_run_options(arguments, environment),
                            environment);
}

std::string refusal_of(const Arguments& arguments) {
  try {
    nodes_of(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NodesPlan, OneNodeIsAlone) {
  EXPECT_EQ(nodes_of({"p"}).mode, NodesPlan::Mode::kAlone);
  EXPECT_EQ(nodes_of({"--nnodes=1", "--node-rank=0", "p"}).mode,
            NodesPlan::Mode::kAlone);
  expect_in(refusal_of({"--node-rank=1", "p"}), "needs --nnodes 2 or more");
}

TEST(NodesPlan, NumberedNodesMeetAtTheMaster) {
  const NodesPlan plan =
      nodes_of({"--nnodes=2", "--node-rank=1", "--master-addr=box", "p"});
  EXPECT_EQ(plan.mode, NodesPlan::Mode::kStatic);
  EXPECT_EQ(plan.node_rank, 1);
  EXPECT_EQ(plan.address, "box");
  EXPECT_EQ(plan.port, 29500);
  const NodesPlan by_variables =
      nodes_of({"--nnodes=2", "--node-rank=0", "p"},
               {{"MASTER_ADDR", "other"}, {"MASTER_PORT", "77"}});
  EXPECT_EQ(by_variables.address, "other");
  EXPECT_EQ(by_variables.port, 77);
  // As in torchrun, where the back end is static unless it is said otherwise.
  const NodesPlan by_endpoint =
      nodes_of({"--nnodes=2", "--node-rank=0", "--rdzv-endpoint=box:1", "p"});
  EXPECT_EQ(by_endpoint.mode, NodesPlan::Mode::kStatic);
  EXPECT_EQ(by_endpoint.port, 1);
}

TEST(NodesPlan, WhatIsMissingIsSaid) {
  expect_in(refusal_of({"--nnodes=2", "p"}), "which node is this?");
  expect_in(refusal_of({"--nnodes=2", "--node-rank=1", "p"}),
            "where is node 0?");
  expect_in(refusal_of({"--nnodes=2", "--node-rank=2", "--master-addr=a", "p"}),
            "--node-rank 2 must be below --nnodes 2");
  expect_in(refusal_of({"--nnodes=2", "--standalone", "p"}),
            "--standalone is for one node");
}

TEST(NodesPlan, NodesThatComeAndGoMeetAtAnEndpoint) {
  const NodesPlan plan =
      nodes_of({"--nnodes=2:4", "--rdzv-endpoint=127.0.0.1", "p"});
  EXPECT_EQ(plan.mode, NodesPlan::Mode::kJoin);
  EXPECT_TRUE(plan.is_elastic());
  EXPECT_EQ(plan.min_nodes, 2);
  EXPECT_EQ(plan.num_nodes, 4);
  EXPECT_TRUE(nodes_of({"--nnodes=1:4", "--rdzv-endpoint=127.0.0.1", "p"})
                  .is_elastic());
  EXPECT_FALSE(nodes_of({"--nnodes=4:4", "--rdzv-endpoint=127.0.0.1", "p"})
                   .is_elastic());
  // As in torchrun, where c10d takes no notice of numbers.
  EXPECT_TRUE(nodes_of({"--nnodes=2:4", "--rdzv-backend=c10d", "--node-rank=3",
                        "--rdzv-endpoint=127.0.0.1", "p"})
                  .is_elastic());
}

TEST(NodesPlan, OneToSeveralNodesWithoutAnEndpointAreOne) {
  for (const Arguments& more :
       {Arguments{}, Arguments{"--node-rank=0"},
        Arguments{"--standalone", "--rdzv-endpoint=127.0.0.1"}}) {
    Arguments arguments = {"--nnodes=1:4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.emplace_back("p");
    EXPECT_EQ(nodes_of(arguments).mode, NodesPlan::Mode::kAlone);
  }
}

TEST(NodesPlan, NodesThatComeAndGoHaveNoNumbers) {
  for (const Arguments& arguments :
       {Arguments{"--nnodes=2:4", "p"},
        Arguments{"--nnodes=2:4", "--node-rank=1", "--master-addr=a", "p"},
        Arguments{"--nnodes=2:4", "--rdzv-endpoint=127.0.0.1", "--node-rank=1",
                  "p"},
        Arguments{"--nnodes=1:4", "--rdzv-endpoint=127.0.0.1",
                  "--rdzv-backend=static", "p"}}) {
    expect_in(refusal_of(arguments),
              "nodes that come and go cannot have fixed numbers; give every "
              "node --rdzv-endpoint HOST and no --node-rank, or one number: "
              "--nnodes 4");
  }
}

TEST(NodesPlan, NodesThatMeetOnANetworkNeedASecret) {
  expect_in(refusal_of({"--nnodes=2", "--rdzv-endpoint=box", "p"}),
            "--rdzv-secret-file job.secret");
  EXPECT_EQ(
      nodes_of({"--nnodes=2", "--rdzv-endpoint=box", "--rdzv-no-secret", "p"})
          .port,
      29400);
  for (const char* local : {"localhost", "127.0.0.1:5", "[::1]:5", "::1"}) {
    EXPECT_EQ(
        nodes_of({"--nnodes=2", std::string("--rdzv-endpoint=") + local, "p"})
            .mode,
        NodesPlan::Mode::kJoin)
        << local;
  }
  const testing::TempDir folder;
  const std::string file = folder.write("secret", "0123456789abcdef\n");
  chmod(file.c_str(), 0600);
  EXPECT_EQ(nodes_of({"--nnodes=2", "--rdzv-endpoint=box:6",
                      "--rdzv-secret-file=" + file, "p"})
                .secret,
            "0123456789abcdef");
}

TEST(NodesPlan, AnEndpointIsAHostAndAPort) {
  const auto endpoint = [](const std::string& text) {
    const launch::Endpoint result = launch::parse_endpoint(text, 29400);
    return result.host + " " + std::to_string(result.port);
  };
  EXPECT_EQ(endpoint("box"), "box 29400");
  EXPECT_EQ(endpoint("box:1"), "box 1");
  EXPECT_EQ(endpoint("10.0.0.1:65535"), "10.0.0.1 65535");
  EXPECT_EQ(endpoint("fd00::1"), "fd00::1 29400");
  EXPECT_EQ(endpoint("[fd00::1]"), "fd00::1 29400");
  EXPECT_EQ(endpoint("[fd00::1]:1"), "fd00::1 1");
  for (const char* bad : {"box:", "box:x", "box:65536", "[fd00::1", "[::1]5"}) {
    EXPECT_THROW(launch::parse_endpoint(bad, 1), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace lockstep
