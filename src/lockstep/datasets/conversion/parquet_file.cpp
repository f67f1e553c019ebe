#include "lockstep/datasets/conversion/parquet_file.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

using BatchReader = std::unique_ptr<arrow::RecordBatchReader>;

// The numbers of an array, whatever their type; no value for others.
std::optional<std::vector<double>> as_numbers(const arrow::Array& array) {
  std::vector<double> numbers;
  const auto copy = [&]<typename Typed>(const Typed& typed) {
    numbers.reserve(static_cast<size_t>(typed.length()));
    for (int64_t i = 0; i < typed.length(); ++i) {
      numbers.push_back(static_cast<double>(typed.Value(i)));
    }
  };
  switch (array.type_id()) {
    case arrow::Type::DOUBLE:
      copy(static_cast<const arrow::DoubleArray&>(array));
      break;
    case arrow::Type::FLOAT:
      copy(static_cast<const arrow::FloatArray&>(array));
      break;
    case arrow::Type::INT64:
      copy(static_cast<const arrow::Int64Array&>(array));
      break;
    case arrow::Type::INT32:
      copy(static_cast<const arrow::Int32Array&>(array));
      break;
    case arrow::Type::INT16:
      copy(static_cast<const arrow::Int16Array&>(array));
      break;
    case arrow::Type::INT8:
      copy(static_cast<const arrow::Int8Array&>(array));
      break;
    case arrow::Type::UINT8:
      copy(static_cast<const arrow::UInt8Array&>(array));
      break;
    default: return std::nullopt;
  }
  if (array.null_count() > 0) return std::nullopt;
  return numbers;
}

// The list in row `row`; empty for other types.
std::shared_ptr<arrow::Array> list_of(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return static_cast<const arrow::ListArray&>(array).value_slice(row);
    case arrow::Type::LARGE_LIST:
      return static_cast<const arrow::LargeListArray&>(array).value_slice(row);
    case arrow::Type::FIXED_SIZE_LIST:
      return static_cast<const arrow::FixedSizeListArray&>(array).value_slice(
          row);
    default: return nullptr;
  }
}

// The seven numbers of row `row`; no value for other types and sizes.
std::optional<formats::Action> action_of(const arrow::Array& array,
                                         int64_t row) {
  const auto values = list_of(array, row);
  if (!values ||
      values->length() != static_cast<int64_t>(formats::kActionSize)) {
    return std::nullopt;
  }
  const auto numbers = as_numbers(*values);
  if (!numbers) return std::nullopt;
  formats::Action action{};
  for (size_t i = 0; i < formats::kActionSize; ++i) {
    action[i] = static_cast<float>((*numbers)[i]);
  }
  return action;
}

// Bytes of row `row`; no value where there are none.
std::optional<std::string_view> bytes_of(const arrow::Array& array,
                                         int64_t row) {
  if (array.IsNull(row)) return std::nullopt;
  switch (array.type_id()) {
    case arrow::Type::BINARY:
      return static_cast<const arrow::BinaryArray&>(array).GetView(row);
    case arrow::Type::LARGE_BINARY:
      return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
    case arrow::Type::STRUCT: {
      const auto& table = static_cast<const arrow::StructArray&>(array);
      const auto field = table.GetFieldByName("bytes");
      if (!field || field->type_id() == arrow::Type::STRUCT) {
        return std::nullopt;
      }
      return bytes_of(*field, row);
    }
    default: return std::nullopt;
  }
}

// The text of row `row`; no value where there is none.
std::optional<std::string> text_of(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) return std::nullopt;
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return static_cast<const arrow::StringArray&>(array).GetString(row);
    case arrow::Type::LARGE_STRING:
      return static_cast<const arrow::LargeStringArray&>(array).GetString(row);
    default: return std::nullopt;
  }
}

// The texts of a list in row `row`; no value for other types.
std::optional<std::vector<std::string>> text_list_of(const arrow::Array& array,
                                                     int64_t row) {
  std::vector<std::string> texts;
  const auto values = list_of(array, row);
  if (!values) return std::nullopt;
  for (int64_t i = 0; i < values->length(); ++i) {
    const auto text = text_of(*values, i);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

}  // namespace

struct ParquetFile::Impl {
  std::string path;
  std::unique_ptr<parquet::arrow::FileReader> reader = {};
  std::vector<std::string> columns = {};
  // Where images() goes on: a batch, the rows of it that were taken, and the
  // number of the row behind those.
  BatchReader image_reader = {};
  std::vector<std::string> image_columns = {};
  std::shared_ptr<arrow::RecordBatch> batch = {};
  int64_t batch_row = 0;
  size_t next_row = 0;

  [[noreturn]] void refuse(const std::string& why) const {
    throw FormatError(fmt::format("'{}': {}", path, why));
  }

  void check(const arrow::Status& status) const {
    if (!status.ok()) {
      refuse("cannot be read as parquet; is it whole? (" + status.message() +
             ")");
    }
  }

  // The library answers damaged files by both of its kinds of errors.
  template <typename Work>
  void guarded(const Work& work) const {
    try {
      work();
    } catch (const parquet::ParquetException& error) {
      refuse(std::string("cannot be read as parquet; is it whole? (") +
             error.what() + ")");
    }
  }

  void open() {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.OpenFile(path, /*memory_map=*/false));
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_batch_size(16);
    check(builder.properties(properties)->Build(&reader));
    const auto* schema = reader->parquet_reader()->metadata()->schema();
    for (int i = 0; i < schema->group_node()->field_count(); ++i) {
      columns.push_back(schema->group_node()->field(i)->name());
    }
  }

  // Rows of some columns, in the file's order of columns, from a row group on.
  BatchReader rows(std::span<const std::string> wanted,
                   int first_group = 0) const {
    const auto metadata = reader->parquet_reader()->metadata();
    const auto* schema = metadata->schema();
    std::vector<int> leaves;
    for (int i = 0; i < schema->num_columns(); ++i) {
      const std::string name = schema->Column(i)->path()->ToDotVector()[0];
      if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) {
        leaves.push_back(i);
      }
    }
    std::vector<int> groups(
        static_cast<size_t>(metadata->num_row_groups() - first_group));
    std::iota(groups.begin(), groups.end(), first_group);
    auto result = reader->GetRecordBatchReader(groups, leaves);
    check(result.status());
    return *std::move(result);
  }

  // Calls take(array) for each part of one column.
  template <typename Take>
  void each_part(const std::string& column, const Take& take) const {
    guarded([&] {
      const std::vector<std::string> names = {column};
      const BatchReader reader_of_rows = rows(names);
      while (true) {
        std::shared_ptr<arrow::RecordBatch> part;
        check(reader_of_rows->ReadNext(&part));
        if (!part) return;
        const auto array = part->GetColumnByName(column);
        if (!array) refuse(no_column(column));
        take(*array);
      }
    });
  }

  std::string no_column(const std::string& column) const {
    return fmt::format("has no column '{}', but {}", column,
                       base::join(columns, ", "));
  }

  // Calls take(array, row) for each row of one column; `what` says what else
  // is refused.
  template <typename T, typename Take>
  std::vector<T> each_row(const std::string& column, const char* what,
                          const Take& take) const {
    std::vector<T> all;
    each_part(column, [&](const arrow::Array& part) {
      for (int64_t row = 0; row < part.length(); ++row) {
        std::optional<T> value = take(part, row);
        if (!value) {
          refuse(fmt::format("column '{}' ({}) does not hold {} in every row",
                             column, part.type()->ToString(), what));
        }
        all.push_back(*std::move(value));
      }
    });
    return all;
  }

  struct RowGroup {
    int number = 0;
    size_t first_row = 0;
  };

  RowGroup group_of(size_t row) const {
    const auto metadata = reader->parquet_reader()->metadata();
    RowGroup group;
    for (; group.number + 1 < metadata->num_row_groups(); ++group.number) {
      const auto size =
          static_cast<size_t>(metadata->RowGroup(group.number)->num_rows());
      if (row < group.first_row + size) break;
      group.first_row += size;
    }
    return group;
  }

  // Makes the row, or one before it in its row group, the next one.
  void seek(const std::vector<std::string>& wanted, size_t row) {
    const RowGroup group = group_of(row);
    if (image_reader && image_columns == wanted && row >= next_row &&
        group.first_row <= next_row) {
      return;
    }
    image_columns = wanted;
    image_reader = rows(image_columns, group.number);
    batch.reset();
    next_row = group.first_row;
  }

  // False at the end of the file.
  bool next_batch() {
    check(image_reader->ReadNext(&batch));
    batch_row = 0;
    return batch != nullptr;
  }

  // Some of the rows up to `end` that are in the batch; those before `first`
  // are skipped.
  void take_images(size_t first, size_t end, const TakeBytes& take) {
    const int64_t begin_row = batch_row;
    const auto num_left = static_cast<size_t>(batch->num_rows() - begin_row);
    const size_t num_taken = std::min(num_left, end - next_row);
    const size_t num_skipped =
        std::min(num_taken, first - std::min(first, next_row));
    for (size_t i = 0; i < image_columns.size(); ++i) {
      const auto array = batch->GetColumnByName(image_columns[i]);
      if (!array) refuse(no_column(image_columns[i]));
      for (size_t row = num_skipped; row < num_taken; ++row) {
        const auto bytes =
            bytes_of(*array, begin_row + static_cast<int64_t>(row));
        if (!bytes) {
          refuse(
              fmt::format("column '{}' ({}) has a row without the bytes of "
                          "an image",
                          image_columns[i], array->type()->ToString()));
        }
        take(i, *bytes);
      }
    }
    batch_row += static_cast<int64_t>(num_taken);
    next_row += num_taken;
  }
};

ParquetFile::ParquetFile(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(Impl{.path = path.string()})) {
  impl_->guarded([&] { impl_->open(); });
}

ParquetFile::~ParquetFile() = default;

const std::vector<std::string>& ParquetFile::columns() const {
  return impl_->columns;
}

size_t ParquetFile::num_rows() const {
  return static_cast<size_t>(
      impl_->reader->parquet_reader()->metadata()->num_rows());
}

std::vector<double> ParquetFile::numbers(const std::string& column) const {
  std::vector<double> all;
  impl_->each_part(column, [&](const arrow::Array& part) {
    const auto numbers = as_numbers(part);
    if (!numbers) {
      impl_->refuse(
          fmt::format("column '{}' ({}) does not hold a number in "
                      "every row",
                      column, part.type()->ToString()));
    }
    all.insert(all.end(), numbers->begin(), numbers->end());
  });
  return all;
}

std::vector<std::string> ParquetFile::texts(const std::string& column) const {
  return impl_->each_row<std::string>(column, "a text", text_of);
}

std::vector<std::vector<std::string>> ParquetFile::text_lists(
    const std::string& column) const {
  return impl_->each_row<std::vector<std::string>>(column, "a list of texts",
                                                   text_list_of);
}

std::vector<formats::Action> ParquetFile::actions(
    const std::string& column) const {
  return impl_->each_row<formats::Action>(column, "7 numbers", action_of);
}

void ParquetFile::images(std::span<const std::string> columns, const Rows& rows,
                         const TakeBytes& take) {
  Impl& impl = *impl_;
  impl.guarded([&] {
    impl.seek({columns.begin(), columns.end()}, rows.first);
    const size_t end = rows.first + rows.count;
    while (impl.next_row < end) {
      const bool has_rows =
          impl.batch && impl.batch_row < impl.batch->num_rows();
      if (!has_rows && !impl.next_batch()) return;
      impl.take_images(rows.first, end, take);
    }
  });
}

}  // namespace lockstep::conversion
