#include "support/cifar10_files.h"

namespace lockstep::testing {
namespace {

using namespace std::string_literals;

std::string word(uint32_t number) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

std::string text(const std::string& content) {
  return "U"s + static_cast<char>(content.size()) + content;
}

std::string short_bytes(const std::string& content) {
  return "C"s + static_cast<char>(content.size()) + content;
}

std::string integer(int64_t number) {
  return "J" + word(static_cast<uint32_t>(number));
}

}  // namespace

std::string cifar10_pixels(int64_t index) {
  std::string bytes;
  for (int64_t i = 0; i < 3072; ++i) {
    bytes += static_cast<char>(index * 37 + i * (index % 5 + 1) + i / 256);
  }
  return bytes;
}

std::string cifar10_binary(int64_t begin, int64_t end) {
  std::string bytes;
  for (int64_t i = begin; i < end; ++i) {
    bytes += static_cast<char>(i % 10);
    bytes += cifar10_pixels(i);
  }
  return bytes;
}

namespace {

using Key = std::string (*)(const std::string&);

std::string cifar10_pickle(int64_t begin, int64_t end, Key key) {
  std::string data;
  std::string labels;
  for (int64_t i = begin; i < end; ++i) {
    data += cifar10_pixels(i);
    labels += "K"s + static_cast<char>(i % 10);
  }
  const std::string type = "cnumpy\ndtype\n" + text("u1") + "K\0K\1\x87R("s +
                           "K\3"s + text("|") + "NNN" + integer(-1) +
                           integer(-1) + "K\0tb"s;
  const std::string array =
      "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
      "K\0\x85"s +
      text("b") + "\x87R(K\1"s + integer(end - begin) + integer(3072) + "\x86" +
      type + "\x89T" + word(static_cast<uint32_t>(data.size())) + data + "tb";
  return "\x80"s + (key == text ? '\2' : '\3') + "}(" + key("data") + array +
         key("labels") + "](" + labels + "e" + key("batch_label") +
         key("training batch 1 of 5") + key("filenames") + "]u.";
}

}  // namespace

std::string cifar10_python(int64_t begin, int64_t end) {
  return cifar10_pickle(begin, end, text);
}

std::string cifar10_python_with_bytes(int64_t begin, int64_t end) {
  return cifar10_pickle(begin, end, short_bytes);
}

}  // namespace lockstep::testing
