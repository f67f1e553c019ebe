#include "lockstep/stack/stack_text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

stack::Frame in_library(const char* function, const char* module) {
  return {.function = function, .offset = 4, .module = module};
}

stack::Frame in_program(const std::string& function) {
  return {
      .function = function, .offset = 4, .module = "train", .is_program = true};
}

stack::ThreadStack thread(pid_t id, std::vector<stack::Frame> frames) {
  return {.id = id, .name = "train", .state = 'S', .frames = std::move(frames)};
}

const stack::Frame kCondWait = in_library("pthread_cond_wait", "libc.so.6");
const stack::Frame kSleep = in_library("clock_nanosleep", "libc.so.6");

TEST(StackText, ThreadsThatWaitForWorkAreIdle) {
  EXPECT_TRUE(stack::is_idle(
      thread(1, {kCondWait, in_program("lockstep::data::work()")})));
  EXPECT_TRUE(stack::is_idle(
      thread(1, {in_library("epoll_wait", "libc.so.6"),
                 in_library("gloo::Loop::run()", "libtorch_cpu.so")})));
  EXPECT_TRUE(stack::is_idle(
      thread(1, {in_library("gomp_team_barrier_wait", "libgomp.so.1")})));
}

TEST(StackText, ThreadsInUserCodeAreNot) {
  EXPECT_FALSE(stack::is_idle(thread(1, {kCondWait, in_program("load()")})));
  EXPECT_FALSE(stack::is_idle(
      thread(1, {kSleep, in_program("lockstep::data::load()")})));
  EXPECT_FALSE(
      stack::is_idle(thread(1, {in_library("pthread_mutex_lock", "libc.so.6"),
                                in_library("lock()", "libdata.so")})));
  auto running = thread(1, {in_library("at::mm()", "libtorch_cpu.so")});
  running.state = 'R';
  EXPECT_FALSE(stack::is_idle(running));
}

TEST(StackText, ShowsTheMainThreadAndThoseThatAreNotIdle) {
  const std::vector<stack::ThreadStack> threads = {
      thread(7, {kCondWait, in_program("lockstep::Batches::next()")}),
      thread(8, {kCondWait, in_program("lockstep::data::work()")}),
      thread(9, {kSleep, in_program("Images::get(long) const")}),
      thread(10, {kSleep, in_program("Images::get(long) const")})};
  EXPECT_EQ(stack::stack_text(threads),
            "main thread 7 (train), sleeping:\n"
            "  #0 pthread_cond_wait+0x4 (libc.so.6)\n"
            "  #1 lockstep::Batches::next()+0x4 (train)\n"
            "thread 9 (train), sleeping:\n"
            "  #0 clock_nanosleep+0x4 (libc.so.6)\n"
            "  #1 Images::get(long) const+0x4 (train)\n"
            "1 more like these\n"
            "1 that wait for work are left out\n");
}

TEST(StackText, WaitingForAnInterruptIsIdle) {
  EXPECT_TRUE(stack::is_idle(
      thread(1, {in_library("syscall", "libc.so.6"),
                 in_program("lockstep::base::RecoveryWriter::"
                            "wait_for_interrupt(unsigned int) const"),
                 in_program("lockstep::comm::InterruptWatch::run()")})));
  // What a rank waits for in a collective.
  EXPECT_FALSE(stack::is_idle(
      thread(1, {in_library("syscall", "libc.so.6"),
                 in_program("lockstep::comm::SharedChannel::wait_for(int)")})));
}

TEST(StackText, ThreadsBeyondTheEighthAreCounted) {
  std::vector<stack::ThreadStack> threads;
  for (int i = 1; i <= 10; ++i) {
    threads.push_back(
        thread(i, {kSleep, in_program("work" + std::to_string(i) + "()")}));
  }
  const std::string text = stack::stack_text(threads);
  EXPECT_NE(text.find("work8()"), std::string::npos) << text;
  EXPECT_EQ(text.find("work9()"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n2 others\n")) << text;
}

TEST(StackText, OfLongStacksThoseOfTheProgramAreShown) {
  std::vector<stack::Frame> frames(100, in_library("", "libtorch_cpu.so"));
  frames[50] = in_program("Model::forward()");
  frames.push_back(in_program("main"));
  const std::string text =
      stack::stack_text(std::vector{thread(7, std::move(frames))});
  EXPECT_EQ(text,
            "main thread 7 (train), sleeping:\n"
            "  #0 0x4 (libtorch_cpu.so)\n"
            "  #1 0x4 (libtorch_cpu.so)\n"
            "  #2 0x4 (libtorch_cpu.so)\n"
            "  #3 0x4 (libtorch_cpu.so)\n"
            "  #4 0x4 (libtorch_cpu.so)\n"
            "  ... 45 frames\n"
            "  #50 Model::forward()+0x4 (train)\n"
            "  ... 49 frames\n"
            "  #100 main+0x4 (train)\n");
}

}  // namespace
}  // namespace lockstep
