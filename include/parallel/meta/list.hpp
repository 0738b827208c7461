// Two containers that constant expressions of every supported compiler can use: List has its room inside it, Vector
// grows.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// At most `capacity` elements, held inside the object. One more is an exception, or no constant expression.
template <class T, int capacity>
struct List {
  T items[std::size_t{capacity}]{};
  int count = 0;

  constexpr List() = default;
  constexpr List(std::initializer_list<T> values) {
    if (values.size() > capacity) full();
    for (const T& value : values) items[count++] = value;
  }
  constexpr void push_back(const T& value) {
    if (count == capacity) full();
    items[count++] = value;
  }
  constexpr void erase(int at) {
    for (int i = at; i + 1 < count; ++i) items[i] = items[i + 1];
    --count;
  }
  constexpr int size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T& operator[](int i) { return items[i]; }
  constexpr const T& operator[](int i) const { return items[i]; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + count; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr bool contains(const T& value) const {
    for (const T& item : *this)
      if (item == value) return true;
    return false;
  }
  constexpr bool operator==(const List& other) const {
    if (count != other.count) return false;
    for (int i = 0; i < count; ++i)
      if (!(items[i] == other.items[i])) return false;
    return true;
  }

 private:
  [[noreturn]] static void full() {
    throw std::length_error("parallel: a list is full; the program is larger than this library's lists");
  }
};

/// A growing array. It exists because clang 14 has no constexpr std::vector; at run time it is an ordinary one.
template <class T>
class Vector {
 public:
  constexpr Vector() = default;
  constexpr Vector(const Vector& other) { assign(other); }
  constexpr Vector(Vector&& other) noexcept { swap(other); }
  constexpr Vector& operator=(Vector other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~Vector() { delete[] items_; }

  constexpr void push_back(const T& value) {
    if (count_ == capacity_) return push_back_grown(value);
    items_[count_++] = value;
  }
  /// Inserts before position `at`; what stood there and behind moves back by one.
  constexpr void insert(int at, const T& value) {
    const T kept = value;
    push_back(kept);
    for (int i = count_ - 1; i > at; --i) items_[i] = items_[i - 1];
    items_[at] = kept;
  }
  constexpr void erase(int at) {
    for (int i = at; i + 1 < count_; ++i) items_[i] = items_[i + 1];
    --count_;
  }
  constexpr void resize(int count, const T& value = T{}) {
    const T kept = value;  // NOLINT: it may be an element of this
    const int before = count_;
    if (count > before) extend(count - before);
    for (int i = before; i < count; ++i) items_[i] = kept;
    count_ = count;
  }
  constexpr void clear() { count_ = 0; }
  /// Room for so many more elements at the end, which the caller writes. Returns the first of them.
  constexpr T* extend(int count) {
    if (capacity_ < count_ + count) grow(count_ + count);
    count_ += count;
    return items_ + count_ - count;
  }
  constexpr int size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr T& operator[](int i) { return items_[i]; }
  constexpr const T& operator[](int i) const { return items_[i]; }
  constexpr T& back() { return items_[count_ - 1]; }
  constexpr const T& back() const { return items_[count_ - 1]; }
  constexpr T* data() { return items_; }
  constexpr const T* data() const { return items_; }
  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + count_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + count_; }

 private:
  constexpr void push_back_grown(const T& value) {
    const T kept = value;  // NOLINT: it may be an element of this
    grow(count_ + 1);
    items_[count_++] = kept;
  }
  constexpr void grow(int least) {
    int capacity = capacity_ == 0 ? 16 : capacity_;
    while (capacity < least) capacity *= 4;  // compilers copy member by member
    T* items = new T[static_cast<std::size_t>(capacity)]{};
    for (int i = 0; i < count_; ++i) items[i] = items_[i];
    delete[] items_;
    items_ = items;
    capacity_ = capacity;
  }
  constexpr void assign(const Vector& other) {
    T* to = extend(other.count_);
    for (int i = 0; i < other.count_; ++i) to[i] = other.items_[i];
  }
  constexpr void swap(Vector& other) noexcept {
    T* items = items_;
    const int count = count_, capacity = capacity_;
    items_ = other.items_;
    count_ = other.count_;
    capacity_ = other.capacity_;
    other.items_ = items;
    other.count_ = count;
    other.capacity_ = capacity;
  }

  T* items_ = nullptr;
  int count_ = 0;
  int capacity_ = 0;
};

}  // namespace parallel::internals
