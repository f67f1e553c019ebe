#include <gtest/gtest.h>

#include <map>

#include "lockstep/error.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

std::shared_ptr<const formats::ByteStorage> four_floats(std::string_view,
                                                        int64_t) {
  return formats::ByteStorage::own(std::vector<std::byte>(16));
}

formats::Value read(const std::string& pickle) {
  formats::ByteReader in(formats::as_bytes(pickle));
  formats::Value value = formats::read_pickle(in, four_floats);
  EXPECT_EQ(in.remaining(), 0u);
  return value;
}

std::string text(const std::string& content) {
  return "X"s + static_cast<char>(content.size()) + "\0\0\0"s + content;
}

// A tensor over a storage of four floats; offset, shape and strides are
// pickled tuples.
std::string tensor(const std::string& offset, const std::string& shape,
                   const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\x04tQ" +
         offset + shape + strides + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

TEST(Pickle, ValuesComeBack) {
  const formats::Value value = testing::sample_value();
  const formats::Pickle pickle = formats::write_pickle(value);
  std::map<std::string, std::shared_ptr<const formats::ByteStorage>> known;
  formats::ByteReader in(formats::as_bytes(pickle.bytes));
  const formats::Value copy =
      formats::read_pickle(in, [&](std::string_view key, int64_t num_bytes) {
        auto& storage = known[std::string(key)];
        if (!storage) {
          const auto bytes = pickle.storages.at(std::stoul(std::string(key)));
          EXPECT_EQ(bytes.size(), static_cast<size_t>(num_bytes));
          storage = formats::ByteStorage::own({bytes.begin(), bytes.end()});
        }
        return storage;
      });
  EXPECT_EQ(testing::describe(copy), testing::describe(value));
}

// As Python 2 pickled an array of bytes of shape [2, 3]: strings without
// encoding, a type and an array that get their state later.
std::string numpy_array(const std::string& shape, const std::string& type,
                        const std::string& bytes) {
  return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
         "K\x00\x85U\x01"
         "b\x87R(K\x01"s +
         shape + "cnumpy\ndtype\nU\x02" + type +
         "K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"s +
         "\x89U" + static_cast<char>(bytes.size()) + bytes + "tb";
}

TEST(Pickle, ArraysOfNumpyBecomeTensors) {
  const std::string bytes = "\x00\x01\x02\xfd\xfe\xff"s;
  const formats::Value value =
      read("\x80\x02" + numpy_array("K\x02K\x03\x86", "u1", bytes) + ".");
  const auto* tensor = value.get_if<formats::TensorRecord>();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dtype, formats::DType::kUInt8);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(formats::as_text(formats::packed_elements(*tensor)->bytes()),
            bytes);
}

TEST(Pickle, ArraysOfNumpyMustHaveTheirBytes) {
  const auto shape = [](char rows) { return "K"s + rows + "K\x03\x86"; };
  for (const char rows : {'\x01', '\x03', '\x7f'}) {
    EXPECT_THROW(
        read("\x80\x02" + numpy_array(shape(rows), "u1", "abcdef") + "."),
        FormatError);
  }
  EXPECT_THROW(read("\x80\x02" + numpy_array("K\x06", "u1", "abcdef") + "."),
               FormatError);
  EXPECT_THROW(
      read("\x80\x02" +
           numpy_array("J\xff\xff\xff\xffK\x03\x86", "u1", "abcdef") + "."),
      FormatError);
}

TEST(Pickle, ArraysOfOtherThingsAreOpaque) {
  const formats::Value value =
      read("\x80\x02" + numpy_array("K\x01\x85", "O8", "abcdefgh") + ".");
  const auto* opaque = value.get_if<Opaque>();
  ASSERT_NE(opaque, nullptr);
  EXPECT_EQ(opaque->class_name, "numpy.ndarray");
}

TEST(Pickle, NothingIsCalled) {
  const formats::Value value =
      read("\x80\x02}(" + text("evil") + "cos\nsystem\n" +
           text("touch /tmp/evil") + "\x85R" + text("good") + "K\x05u.");
  EXPECT_EQ(value.find("evil")->get_if<Opaque>()->class_name, "os.system");
  EXPECT_EQ(value.at("good").as_int(), 5);
}

TEST(Pickle, UnknownObjectsSwallowTheirState) {
  const formats::Value value =
      read("\x80\x02}(" + text("args") + "cargparse\nNamespace\n)\x81}(" +
           text("lr") + "K\x01ub" + text("items") + "cmy\nDict\n)R(" +
           text("a") + "K\x01u" + text("list") + "cmy\nList\n)R(K\x01" + "eu.");
  EXPECT_EQ(value.find("args")->get_if<Opaque>()->class_name,
            "argparse.Namespace");
  EXPECT_EQ(value.find("items")->get_if<Opaque>()->class_name, "my.Dict");
  EXPECT_EQ(value.find("list")->get_if<Opaque>()->class_name, "my.List");
}

TEST(Pickle, TensorsOfUnknownObjectsAreUnknown) {
  const std::string storage = "(" + text("storage") + "ctorch\nQInt8Storage\n" +
                              text("0") + text("cpu") + "K\x04tQ";
  const formats::Value value =
      read("\x80\x02" +
           ("(ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\0"s + "tR") +
           "ctorch._utils\n_rebuild_parameter\n(" +
           "ctorch._utils\n_rebuild_sparse_tensor\n)R" + "\x89tRt.");
  EXPECT_EQ(value.at(0).value().get_if<Opaque>()->class_name,
            "torch.QInt8Storage");
  EXPECT_EQ(value.at(1).value().get_if<Opaque>()->class_name,
            "torch._utils._rebuild_sparse_tensor");
}

TEST(Pickle, SharedListsAreReadWhole) {
  // x = [1]; (x, x), with x filled after it was first remembered.
  const formats::Value value = read("\x80\x02]q\0(K\x01"s + "eh\0\x86."s);
  EXPECT_EQ(value.at(1).at(0).as_int(), 1);
}

TEST(Pickle, CyclesAreRefused) {
  EXPECT_THROW(read("\x80\x02]q\0h\0a."s), FormatError);
}

TEST(Pickle, SmallPicklesCannotMakeHugeTrees) {
  // Each level is a pair of the one before: 2^100 values.
  std::string laughs = "\x80\x02K\x01";
  for (int i = 0; i < 100; ++i) laughs += "q\0h\0\x86"s;
  EXPECT_THROW(read(laughs + "."), FormatError);
  // One text of 64 KiB, remembered and repeated a million times.
  std::string repeated = "\x80\x02]("s + "X\0\0\x01\0"s;
  repeated += std::string(65536, 'x') + "q\0"s;
  for (int i = 0; i < 1'000'000; ++i) repeated += "h\0"s;
  EXPECT_THROW(read(repeated + "e."), FormatError);
}

// What a call makes is a copy of what it is given.
TEST(Pickle, SmallPicklesCannotMakeManyCopies) {
  const auto times = [](int count, const std::string& part) {
    std::string all;
    for (int i = 0; i < count; ++i) all += part;
    return all;
  };
  const std::string many = times(100'000, "N");
  const std::string long_text =
      "X\0\0\x10\0"s + std::string(size_t{1} << 20, 'x');
  for (const std::string& pickle :
       {"cbuiltins\nset\nq\0](" + many + "e\x85q\x01" +
            times(50'000, "h\0h\x01R0"s),
        "ctorch\nSize\nq\0(" + many + "t\x85q\x01" +
            times(50'000, "h\0h\x01R0"s),
        "c_codecs\nencode\nq\0" + long_text + "\x85q\x01" +
            times(50'000, "h\0h\x01R0"s),
        long_text + "q\0" + long_text + "q\x01" +
            times(50'000, "h\0h\x01\x93" + "0"s)}) {
    EXPECT_THROW(read(pickle + "N."), FormatError);
  }
}

TEST(Pickle, CyclesOfLongListsTakeLittleMemory) {
  EXPECT_THROW(read("\x80\x02]q\0(h\0"s + std::string(2'000'000, 'N') + "e."),
               FormatError);
}

TEST(Pickle, LongListsOfSmallThingsAreRead) {
  const formats::Value value = read("](" + std::string(1'000'000, 'N') + "e.");
  EXPECT_EQ(BasicView(value).as_list().size(), 1'000'000U);
}

TEST(Pickle, DeepNestingIsRefused) {
  EXPECT_THROW(read(std::string(100'000, ']') + std::string(99'999, 'a') + "."),
               FormatError);
}

TEST(Pickle, TensorsOutsideTheirStorageAreRefused) {
  EXPECT_TRUE(read(tensor("K\0"s, "(K\x02K\x02t", "(K\x02K\x01t") + ".")
                  .is<formats::TensorRecord>());
  EXPECT_THROW(read(tensor("K\x01", "(K\x04t", "(K\x01t") + "."), FormatError);
  EXPECT_THROW(read(tensor("K\0"s, "(K\x05t", "(K\x01t") + "."), FormatError);
  EXPECT_THROW(read(tensor("K\0"s, "(K\x02t", "(J\xff\xff\xff\xfft") + "."),
               FormatError);
  EXPECT_THROW(read(tensor("K\0"s, "(K\x02t", "(t") + "."), FormatError);
}

TEST(Pickle, BrokenProgramsAreRefused) {
  for (const std::string& pickle :
       {""s, "."s, "\x80\x02"s, "\x80\x09N."s, "h\x05."s, "t."s, "R."s, "K"s,
        "}K\x01s."s, "NNa."s, "Q."s, "NQ."s, "\xfe."s, "cos"s,
        "X\xff\xff\xff\xffx."s, "}(K\x01u."s,
        "}(" + text("a") + "N" + text("a") + "Nu."}) {
    EXPECT_THROW(read(pickle), FormatError) << pickle;
  }
}

TEST(Pickle, WhatPythonCannotReadIsNotWritten) {
  EXPECT_THROW(formats::write_pickle("\xff"), FormatError);
  EXPECT_THROW(formats::write_pickle(Opaque{"x.Y"}), FormatError);
}

}  // namespace
}  // namespace lockstep
